// Access takes the token. It goes into this tab's session and nowhere else.
import {html, useEffect, useRef, useState} from './lib.js';

export function Access({token, enter, locked, why}) {
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
    return html`<span class="access">token entered
      <button type="button" onClick=${() => enter('')}>Forget it</button></span>`;
  }
  if (!open) {
    return html`<span class="access">read-only
      <button type="button" id="enter-token" onClick=${() => setOpen(true)}>Enter a token</button></span>`;
  }
  return html`<form class="access" onSubmit=${submit}>
    ${locked && html`<span role="alert">${why || 'A token with the scope admin is needed.'}</span>`}
    <label>Token <input id="token" ref=${field} type="password" autocomplete="off" spellcheck="false" required /></label>
    <button type="submit">Use it</button>
    ${!locked && html`<button type="button" onClick=${() => setOpen(false)}>Cancel</button>`}
  </form>`;
}
