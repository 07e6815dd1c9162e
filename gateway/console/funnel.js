// Funnel: which layer answered, since the start and over the last minutes.
import {Chart, Legend, colour, lastMinutes, timeAxis} from './chart.js';
import {Panel, count, html, percent, useMemo} from './lib.js';

const parts = ['process', 'redis', 'mysql', 'created', 'rejected', 'failed'];

export function Funnel({stats, history}) {
  const f = stats.funnel;
  const afterProcess = f.received - f.process;
  const afterRedis = afterProcess - f.redis;
  const rows = [
    ['received', f.received, 'all'],
    ['reached Redis', afterProcess, 'redis', `${count(f.process)} answered in the process`],
    ['reached MySQL', afterRedis, 'mysql', `${count(f.redis)} answered by Redis`],
    ['created', f.created + f.accepted, 'created',
      `${count(f.mysql)} known to MySQL, ${count(f.rejected)} refused, ${count(f.failed)} failed`],
  ];
  const data = useMemo(() => stack(history), [history]);
  const early = f.duplicates > 0 ? (f.process + f.redis) / Math.max(1, f.process + f.redis + f.mysql) : null;
  return html`<${Panel} id="funnel" title="Which layer answers">
    <table class="funnel">
      <caption class="hidden">Requests by how far they went, since the start</caption>
      <tbody>${rows.map(([name, n, c, lost]) => html`<tr key=${name}>
        <th scope="row">${name}</th>
        <td class="bar"><span class=${'fill ' + c} style=${{width: (f.received ? Math.max(0.5, n / f.received * 100) : 0) + '%'}}></span></td>
        <td class="n">${count(n)}</td>
        <td class="dim">${lost || ''}</td>
      </tr>`)}</tbody>
    </table>
    ${early !== null && html`<p>${percent(early)} of what was answered without a new decision never reached MySQL.
      ${' '}The filter was wrong ${count(stats.anomalies.filter_missed)} times: it knew nothing of a key that MySQL knew.</p>`}
    <${Chart} kind="stack" height=${150} data=${data} options=${options}
      label="Answers per second by layer over the last 15 minutes" />
    <${Legend} of=${[['process', 'process'], ['Redis', 'redis'], ['MySQL knew it', 'mysql'], ['created', 'created'], ['refused', 'rejected'], ['failed', 'failed']]} />
  <//>`;
}

// stack adds each part to those before it; uPlot then draws the largest first.
function stack(history) {
  const at = history.map((p) => new Date(p.at) / 1000);
  const sums = history.map(() => 0);
  const layers = parts.map((name) => history.map((p, i) => (sums[i] += p[name])));
  return [at, ...layers.reverse()];
}

function options(axis) {
  return {
    padding: [8, 4, 0, 0],
    scales: {x: {range: lastMinutes}, y: {range: (u, min, max) => [0, Math.max(1, max)]}},
    axes: [timeAxis(axis), {...axis, size: 56, values: (u, all) => all.map((v) => v + '/s')}],
    series: [{}, ...[...parts].reverse().map((name) => ({stroke: colour(name), fill: colour(name), width: 1, points: {show: false}}))],
  };
}
