// Apply changes one setting: it asks why, shows the difference that the gateway
// would make, and makes it.
import {change as put, setting} from './api.js';
import {bytes, html, number, percent, useEffect, useRef, useState} from './lib.js';

export function Apply({name, change, lab, close, applied}) {
  const dialog = useRef(null);
  const [reason, setReason] = useState(change.reason);
  const [shown, setShown] = useState(null); // the dry run, and the version it is for
  const [fault, setFault] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => dialog.current.showModal(), []);

  const attempt = async (work) => {
    setBusy(true);
    setFault('');
    try {
      await work();
    } catch (e) {
      setShown(null);
      setFault(e.code === 'VERSION_MISMATCH' ? 'Somebody else changed a setting meanwhile. Look at the difference again.' : e.message);
    }
    setBusy(false);
  };
  const submit = (e) => {
    e.preventDefault();
    attempt(async () => {
      if (!shown) {
        const {etag, setting: now} = await setting(name);
        // What takes the change back: the value that somebody had set, or what the configuration says.
        setShown({etag, undo: now.origin === 'api' ? now.value : null, ...await put(name, etag, {value: change.value, reason, dry_run: true})});
        return;
      }
      applied({undo: shown.undo, ...await put(name, shown.etag, {value: change.value, reason, dry_run: false})});
    });
  };
  const f = change.forecast;
  return html`<dialog ref=${dialog} aria-labelledby="apply-title" onClose=${close}>
    <form onSubmit=${submit}>
      <h2 id="apply-title">Change ${name}</h2>
      <label>Why? It is kept in the audit trail.
        <textarea id="reason" required maxlength="500" rows="2" value=${reason} onInput=${(e) => { setReason(e.target.value); setShown(null); }}></textarea>
      </label>
      ${shown && html`<div id="difference">
        <table><tbody>
          <tr><th scope="row">now</th><td><del><code>${shown.before}</code></del></td></tr>
          <tr><th scope="row">then</th><td><ins><code>${shown.after}</code></ins></td></tr>
        </tbody></table>
        ${f && f.known && html`<p>Before MySQL: ${percent(lab.current.share)} → <b>${percent(f.share)}</b>; for MySQL: ${number(lab.current.mysql_per_second)}/s → <b>${number(f.mysql_per_second)}/s</b>${lab.bytes_per_key && html`; Redis: ${bytes(lab.current.redis_bytes)} → <b>${bytes(f.redis_bytes)}</b>`}</p>`}
        ${f && !f.known && html`<p class="warn">Nothing is known of this TTL yet: it is longer than what was observed.</p>`}
        <p class="dim">Entries that are in Redis already keep the time that they were written with.</p>
      </div>`}
      ${fault && html`<p class="bad" role="alert">${fault}</p>`}
      <div class="row">
        <button type="submit" id="go" class="main" disabled=${busy || !reason.trim()}>${shown ? 'Change it' : 'Show the difference'}</button>
        <button type="button" onClick=${() => dialog.current.close()}>Cancel</button>
      </div>
    </form>
  </dialog>`;
}
