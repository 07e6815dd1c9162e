// Config: what is in force, where it came from, and who changed it.
import {get} from './api.js';
import {Panel, html, moment, useEffect, useState} from './lib.js';

export function Config({token, version}) {
  const [config, setConfig] = useState(null);
  const [changes, setChanges] = useState([]);
  const [fault, setFault] = useState('');
  const [filter, setFilter] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    Promise.all([get('/admin/v1/config', stop.signal), get('/admin/v1/config/changes?limit=50', stop.signal)])
      .then(([c, h]) => {
        setConfig(c);
        setChanges(h.changes);
        setFault('');
      }, (e) => stop.signal.aborted || setFault(e.message));
    return () => stop.abort();
  }, [token, version]);
  // What somebody has set comes first.
  const shown = (config?.settings || []).filter((s) => s.name.includes(filter.trim().toLowerCase()))
    .sort((a, b) => (a.origin === 'default') - (b.origin === 'default'));
  return html`<${Panel} id="config" title="Settings" wide>
    ${fault && html`<p class="bad">${fault}</p>`}
    ${config && html`<div class="halves">
      <div>
        <label class="filter">Find <input type="search" value=${filter} onInput=${(e) => setFilter(e.target.value)} /></label>
        <div class="scroll tall" tabindex="0" role="region" aria-label="Settings in force"><table>
          <thead><tr><th scope="col">setting</th><th scope="col">value</th><th scope="col">from</th><th scope="col">changes</th></tr></thead>
          <tbody>${shown.map((s) => html`<tr key=${s.name} class=${s.origin === 'default' ? 'plain' : ''}>
            <th scope="row" title=${s.description}>${s.name}</th><td><code>${show(s.value)}</code></td><td>${s.origin}</td>
            <td class="nowrap">${s.pinned ? 'by its origin' : s.reloadable ? 'live' : 'restart'}</td></tr>`)}</tbody>
        </table></div>
      </div>
      <div>
        <h3>Changes</h3>
        ${changes.length === 0 && html`<p class="dim">Nothing was ever changed through the API.</p>`}
        ${changes.length > 0 && html`<div class="scroll tall" tabindex="0" role="region" aria-label="Changes of settings"><table id="changes">
          <thead><tr><th scope="col">version</th><th scope="col">setting</th><th scope="col">from</th><th scope="col">to</th><th scope="col">who</th><th scope="col">why</th><th scope="col">when</th></tr></thead>
          <tbody>${changes.map((c) => html`<tr key=${c.version}><td>${c.version}</td><th scope="row">${c.name}</th>
            <td><code>${show(c.before)}</code></td><td><code>${show(c.after)}</code></td><td>${c.changed_by}</td><td>${c.reason}</td><td>${moment(c.changed_at)}</td></tr>`)}</tbody>
        </table></div>`}
      </div>
    </div>`}
  <//>`;
}

const show = (v) => (v === null || v === undefined ? '' : Array.isArray(v) ? v.join(', ') : String(v));
