// Breaker: when Redis was left alone, and why.
import {Panel, duration, html, moment} from './lib.js';

const windowSeconds = 15 * 60;

export function Breaker({stats, transitions}) {
  const outages = transitions.filter((t) => t.from === 'closed').length;
  return html`<${Panel} id="breaker" title="Redis breaker" wide
    note="While it is open, requests go past Redis to the database: slower, never wrong.">
    <${Timeline} stats=${stats} transitions=${transitions} />
    <p><b>${stats.breaker.state}</b> for ${duration(Math.max(0, (new Date(stats.at) - new Date(stats.breaker.since)) / 1000))};
      ${' '}outages among the moves that are kept: ${outages}.</p>
    ${transitions.length > 0 && html`<div class="scroll tall" tabindex="0" role="region" aria-label="Moves of the breaker"><table>
      <thead><tr><th scope="col">at</th><th scope="col">from</th><th scope="col">to</th><th scope="col">because</th></tr></thead>
      <tbody>${transitions.map((t) => html`<tr key=${t.at + t.to}><td>${moment(t.at)}</td><td>${t.from}</td><td>${t.to}</td><td>${t.reason.replaceAll('_', ' ')}</td></tr>`)}</tbody>
    </table></div>`}
  <//>`;
}

// Timeline shows the last 15 minutes as one bar.
function Timeline({stats, transitions}) {
  const now = new Date(stats.at) / 1000;
  const from = Math.max(now - windowSeconds, new Date(stats.since) / 1000);
  const spans = [];
  let end = now;
  for (const t of transitions) {
    const at = Math.max(from, new Date(t.at) / 1000);
    spans.unshift([t.to, Math.max(0, end - at)]);
    end = Math.min(end, at);
    if (at === from) break;
  }
  const oldest = transitions.at(-1);
  if (end > from) spans.unshift([oldest ? oldest.from : stats.breaker.state, end - from]);
  const open = spans.filter(([s]) => s !== 'closed').reduce((sum, [, n]) => sum + n, 0);
  const words = `Of the last ${duration(Math.max(1, now - from))}, Redis was ${open > 0 ? 'left alone for ' + duration(open) : 'never left alone'}`;
  return html`<div class="timeline" role="img" aria-label=${words}>
    ${spans.map(([state, n], i) => html`<span key=${i} class=${state} style=${{flexGrow: String(n)}}></span>`)}
  </div><p class="dim">${words}.</p>`;
}
