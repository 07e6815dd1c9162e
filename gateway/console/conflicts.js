// Conflicts: who sends what cannot be. Grouped, for one faulty build of a
// storefront makes many.
import {Panel, ago, clock, count, html, useMemo} from './lib.js';

const reasons = {
  process: 'key of another request (this process)', redis: 'key of another request (Redis)', mysql: 'key of another request (MySQL)',
  exists: 'business number taken, same content', exists_different: 'business number taken, other content', duplicate_in_batch: 'business number twice in a batch',
};

export function Conflicts({conflicts}) {
  const groups = useMemo(() => group(conflicts), [conflicts]);
  return html`<${Panel} id="conflicts" title="Recent conflicts" note="By client, a keyed hash of the user; the last ${count(conflicts.length)}.">
    ${groups.length === 0 && html`<p class="dim">None.</p>`}
    <ul class="groups">${groups.map((g) => html`<li key=${g.client}>
      <details>
        <summary><code>${g.client}</code> <b>${count(g.list.length)}</b> <span class="dim">${g.agents.join(', ')} · ${ago(g.list[0].at)}</span></summary>
        <div class="scroll"><table>
          <thead><tr><th scope="col">at</th><th scope="col">code</th><th scope="col">reason</th><th scope="col">digest</th></tr></thead>
          <tbody>${g.list.slice(0, 20).map((c) => html`<tr key=${c.at + c.digest}>
            <td>${clock(c.at)}</td><td>${c.code}</td><td>${reasons[c.reason] || c.reason}</td><td><code>${c.digest}</code></td></tr>`)}</tbody>
        </table></div>
      </details>
    </li>`)}</ul>
  <//>`;
}

function group(conflicts) {
  const by = new Map();
  for (const c of conflicts) {
    if (!by.has(c.client)) by.set(c.client, {client: c.client, list: [], agents: []});
    const g = by.get(c.client);
    g.list.push(c);
    if (c.agent && !g.agents.includes(c.agent)) g.agents.push(c.agent);
  }
  return [...by.values()].sort((a, b) => b.list.length - a.list.length).slice(0, 20);
}
