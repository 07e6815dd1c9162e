// Latency: how long answers take, by what they were.
import {Chart, Legend, colour, lastMinutes, timeAxis} from './chart.js';
import {Panel, count, html, milliseconds, outcomeNames, useMemo} from './lib.js';

const lines = [
  ['created', 'created'], ['replayed_process', 'process'], ['replayed_redis', 'redis'], ['replayed_mysql', 'mysql'],
  ['rejected', 'rejected'], ['failed', 'failed'],
];

export function Latency({stats, history}) {
  const data = useMemo(() => [
    history.map((p) => new Date(p.at) / 1000),
    ...lines.map(([name]) => history.map((p) => p.latency[name]?.[1] || null)),
  ], [history]);
  return html`<${Panel} id="latency" title="How long answers take" note="Decisions of the last minute; the chart shows the 99th percentile.">
    <div class="scroll" tabindex="0" role="region" aria-label="Latency by outcome">
    <table>
      <thead><tr><th scope="col">outcome</th><th scope="col">n</th><th scope="col">p50</th><th scope="col">p95</th><th scope="col">p99</th><th scope="col">p99.9</th></tr></thead>
      <tbody>${stats.latency.map((l) => html`<tr key=${l.outcome}>
        <th scope="row">${outcomeNames[l.outcome]}</th><td>${count(l.count)}</td>
        <td>${milliseconds(l.p50_ms)}</td><td>${milliseconds(l.p95_ms)}</td><td>${milliseconds(l.p99_ms)}</td><td>${milliseconds(l.p999_ms)}</td>
      </tr>`)}
      ${stats.latency.length === 0 && html`<tr><td colspan="6" class="dim">nothing in the last minute</td></tr>`}</tbody>
    </table>
    </div>
    <${Chart} kind="latency" height=${150} data=${data} options=${options}
      label="99th percentile of the latency by outcome over the last 15 minutes" />
    <${Legend} of=${lines.map(([name, c]) => [outcomeNames[name], c])} />
  <//>`;
}

// decades are the powers of ten within a scale.
function decades(u, axis, min, max) {
  const all = [];
  for (let e = Math.ceil(Math.log10(min)); e <= Math.floor(Math.log10(max)); e++) all.push(10 ** e);
  return all;
}

function options(axis) {
  return {
    padding: [8, 4, 0, 0],
    scales: {x: {range: lastMinutes}, y: {distr: 3, range: (u, min, max) => [10 ** Math.floor(Math.log10(min || 0.1)), 10 ** Math.ceil(Math.log10((max || 10) * 1.01))]}},
    axes: [timeAxis(axis), {...axis, size: 56, splits: decades, filter: (u, all) => all, values: (u, all) => all.map(milliseconds)}],
    series: [{}, ...lines.map(([, c]) => ({stroke: colour(c), width: 2, spanGaps: true, points: {show: false}}))],
  };
}
