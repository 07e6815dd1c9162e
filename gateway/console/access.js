// Access takes the token. It goes into this tab's session and nowhere else.
import {get} from './api.js';
import {html, useEffect, useRef, useState} from './lib.js';

const noToken = 'Enter a token with the scope admin.write to change it.';

// useMayChange says whether the token may change anything, and why not. What
// needs no token on this machine needs one here, so that it has a name in the
// audit trail.
export function useMayChange(token) {
  const [answer, setAnswer] = useState({});
  useEffect(() => {
    if (!token) return undefined;
    const stop = new AbortController();
    get('/admin/v1/access', stop.signal).then(
      ({write, operator}) => setAnswer({of: token, yes: write,
        why: write ? '' : `The token of ${operator} lacks the scope admin.write: it can look, and change nothing.`}),
      (e) => stop.signal.aborted || setAnswer({of: token, yes: false, why: `What the token may do is not known: ${e.message}`}),
    );
    return () => stop.abort();
  }, [token]);
  if (!token) return {yes: false, why: noToken};
  return answer.of === token ? answer : {yes: false, why: ''};
}

export function Access({token, enter, mayChange, locked, why}) {
  const [open, setOpen] = useState(false);
  const field = useRef(null);
  useEffect(() => {
    if (locked) setOpen(true);
  }, [locked]);
  useEffect(() => {
    if (open) field.current?.focus();
  }, [open]);
  const submit = (e) => {
    e.preventDefault();
    enter(field.current.value.trim());
    setOpen(false);
  };
  if (token && !open) {
    return html`<span class="access">${mayChange.yes ? 'token entered' : html`<span title=${mayChange.why}>read-only token</span>`}
      <button type="button" onClick=${() => enter('')}>Forget it</button></span>`;
  }
  if (!open) {
    return html`<span class="access">read-only
      <button type="button" id="enter-token" onClick=${() => setOpen(true)}>Enter a token</button></span>`;
  }
  return html`<form class="access" onSubmit=${submit}>
    ${locked && html`<span role="alert">${why || 'A token with the scope admin.read is needed.'}</span>`}
    <label>Token <input id="token" ref=${field} type="password" autocomplete="off" spellcheck="false" required /></label>
    <button type="submit">Use it</button>
    ${!locked && html`<button type="button" onClick=${() => setOpen(false)}>Cancel</button>`}
  </form>`;
}
