// What the pieces share: templates, hooks, and numbers as people read them.
import {h, render} from './vendor/preact.js';
import htm from './vendor/htm.js';

export {render};
export {useCallback, useEffect, useMemo, useRef, useState} from './vendor/hooks.js';
export const html = htm.bind(h);

const whole = new Intl.NumberFormat('en');
const precise = new Intl.NumberFormat('en', {maximumSignificantDigits: 3});

export const count = (n) => whole.format(n);

// number keeps three digits, whatever the size.
export const number = (n) => (n >= 1000 ? whole.format(Math.round(n)) : precise.format(n));

export const rate = (n) => number(n) + '/s';

// percent keeps what matters near the ends: 99.95 % is not 100 %.
export function percent(share) {
  const p = share * 100;
  const digits = p === 0 || p === 100 ? 0 : p > 99 || p < 1 ? 2 : 1;
  return parseFloat(p.toFixed(digits)) + ' %';
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return precise.format(n) + ' ' + units[i];
}

export function milliseconds(ms) {
  if (ms < 0.1) return precise.format(ms * 1000) + ' µs';
  return ms >= 1000 ? precise.format(ms / 1000) + ' s' : precise.format(ms) + ' ms';
}

// duration says seconds in the two largest units.
export function duration(seconds) {
  if (seconds < 1) return precise.format(seconds * 1000) + ' ms';
  if (seconds < 60) return precise.format(seconds) + ' s';
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  const parts = [];
  let left = Math.round(seconds);
  for (const [name, size] of units.slice(first, first + 2)) {
    const n = Math.floor(left / size);
    left -= n * size;
    if (n > 0) parts.push(n + ' ' + name);
  }
  return parts.join(' ');
}

// goDuration says seconds as the configuration writes them.
export function goDuration(seconds) {
  if (seconds > 0 && seconds % 86400 === 0) return seconds / 86400 + 'd';
  const h = Math.floor(seconds / 3600), m = Math.floor(seconds / 60) % 60, s = seconds % 60;
  return (h ? h + 'h' : '') + (m ? m + 'm' : '') + (s || !(h || m) ? s + 's' : '');
}

export const hour = (at) => new Date(at).toLocaleTimeString('en-GB', {hour: '2-digit', minute: '2-digit'});
export const clock = (at) => new Date(at).toLocaleTimeString('en-GB');
export const moment = (at) => new Date(at).toLocaleString('en-GB', {dateStyle: 'medium', timeStyle: 'medium'});

// ago is how long ago something was.
export const ago = (at) => duration(Math.max(0, (Date.now() - new Date(at)) / 1000)) + ' ago';

// Panel is one piece of the page.
export function Panel({id, title, note, wide, children}) {
  return html`<section class=${'panel' + (wide ? ' wide' : '')} id=${id} aria-labelledby=${id + '-title'}>
    <h2 id=${id + '-title'}>${title}</h2>
    ${note && html`<p class="note">${note}</p>`}
    ${children}
  </section>`;
}

// outcomes in the order of the API, with what people call them.
export const outcomeNames = {
  created: 'created',
  replayed_process: 'replayed by the process',
  replayed_redis: 'replayed by Redis',
  replayed_mysql: 'replayed by MySQL',
  in_progress: 'still running',
  reused: 'key reused',
  rejected: 'refused',
  accepted: 'accepted for later',
  failed: 'failed',
};
