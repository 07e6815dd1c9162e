// Keys: which layers know a key. Never what was bought.
import {get} from './api.js';
import {Panel, duration, html, moment, useState} from './lib.js';

export function Keys() {
  const [found, setFound] = useState(null);
  const [fault, setFault] = useState('');
  const look = async (e) => {
    e.preventDefault();
    const form = new FormData(e.target);
    const user = form.get('user').trim(), key = form.get('key').trim();
    setFault('');
    try {
      const answer = await get(`/admin/v1/keys/${encodeURIComponent(user)}/${encodeURIComponent(key)}`);
      setFound({...answer, key});
    } catch (err) {
      setFound(null);
      setFault(err.message);
    }
  };
  return html`<${Panel} id="keys" title="Look up a key">
    <form class="row" onSubmit=${look}>
      <label>User <input name="user" required maxlength="64" autocomplete="off" spellcheck="false" /></label>
      <label>Idempotency key <input name="key" required maxlength="255" autocomplete="off" spellcheck="false" /></label>
      <button type="submit">Look up</button>
    </form>
    <div role="status">
      ${fault && html`<p class="bad">${fault}</p>`}
      ${found && found.key_hash && html`<p class="dim">Its attempts are the lines of the log with <code>key_hash</code> <code>${found.key_hash}</code>;
        ${' '}replays are there at <code>log.level</code> debug. Its conflicts are those of the client <code>${found.client}</code>.</p>`}
      ${found && found.layers.length === 0 && html`<p>No layer knows this key of ${found.user_id}.</p>`}
    </div>
    ${found && found.layers.length > 0 && html`<div class="scroll" tabindex="0" role="region" aria-label="Layers that know the key">
      <table id="layers">
        <thead><tr><th scope="col">layer</th><th scope="col">state</th><th scope="col">age</th><th scope="col">left</th><th scope="col">answer</th><th scope="col">order</th><th scope="col">digest</th></tr></thead>
        <tbody>${found.layers.map((l) => html`<tr key=${l.layer}>
          <th scope="row">${l.layer}</th><td>${(l.state || '').replace('_', ' ')}</td>
          <td title=${l.first_seen_at ? moment(l.first_seen_at) : ''}>${l.age_ms === undefined ? '' : duration(l.age_ms / 1000)}</td>
          <td>${l.ttl_ms ? duration(l.ttl_ms / 1000) : l.layer === 'mysql' ? 'for ever' : ''}</td>
          <td>${l.status || ''}</td><td><code>${(l.location || '').split('/').pop()}</code></td><td><code>${l.digest || ''}</code></td>
        </tr>`)}</tbody>
      </table></div>
      ${new Set(found.layers.map((l) => l.digest).filter(Boolean)).size > 1 && html`<p class="bad">The layers hold different requests for this key.</p>`}`}
  <//>`;
}
