// TTLLab: what another ttl.receipt would do, from what was really observed.
import {get} from './api.js';
import {Apply} from './apply.js';
import {Chart, Legend, colour} from './chart.js';
import {Panel, bytes, count, duration, goDuration, html, number, percent, useEffect, useMemo, useState} from './lib.js';

const m = 60, h = 3600, d = 86400;

// usual are the TTLs that the slider stops at, in seconds.
const usual = [
  15, 20, 30, 45, m, 90, 2 * m, 3 * m, 5 * m, 7 * m, 10 * m, 15 * m, 20 * m, 30 * m, 45 * m,
  h, 90 * m, 2 * h, 3 * h, 4 * h, 6 * h, 8 * h, 12 * h, 18 * h, d, 36 * h, 2 * d, 3 * d, 4 * d, 5 * d, 7 * d,
];

const targets = [0.9, 0.95, 0.99, 0.995, 0.999];

export function TTLLab({token, mayChange, paused, version}) {
  const [lab, setLab] = useState(null);
  const [fault, setFault] = useState('');
  const [target, setTarget] = useState(0.99);
  const [chosen, setChosen] = useState(null); // seconds; null: what is in force
  const [open, setOpen] = useState(null); // what the dialog is about to change
  const [done, setDone] = useState(null); // the last change made here
  const stops = useMemo(() => {
    const current = lab?.current_ttl_seconds;
    const accepted = usual.filter((s) => s > (lab?.longer_than_seconds ?? 0)); // what would be refused is not offered
    return current && !accepted.includes(current) ? [...accepted, current].sort((a, b) => a - b) : accepted;
  }, [lab?.current_ttl_seconds, lab?.longer_than_seconds]);

  useEffect(() => {
    const stop = new AbortController();
    const load = () => get(`/admin/v1/ttl?target=${target}&${stops.map((s) => `ttl=${s}s`).join('&')}`, stop.signal)
      .then((answer) => { setLab(answer); setFault(''); }, (e) => stop.signal.aborted || setFault(e.message));
    load();
    const timer = paused ? 0 : setInterval(load, 5000);
    return () => { clearInterval(timer); stop.abort(); };
  }, [token, target, paused, stops, version]);

  if (!lab) return html`<${Panel} id="lab" title="TTL lab" wide>${fault ? html`<p class="bad">${fault}</p>` : html`<p class="dim">…</p>`}<//>`;
  const current = lab.current_ttl_seconds;
  const seconds = chosen ?? current;
  const at = Math.max(0, stops.indexOf(seconds));
  const forecast = lab.forecasts.find((f) => f.ttl_seconds === seconds) || lab.current;
  const words = say(forecast, lab);
  return html`<${Panel} id="lab" title="TTL lab" wide
    note="How long Redis should remember an answer (ttl.receipt). It changes speed only: MySQL gives late retries the same answer.">
    <div class="lab">
      <div>
        <${Curve} lab=${lab} seconds=${seconds} />
        <${Legend} of=${[['answered before MySQL, with 95 % bounds', 'redis'], ['in force', 'now'], ['chosen', 'chosen'], [`knee: ${percent(target)}`, 'knee'], ['nothing is known', 'unknown']]} />
        <label class="slider"><span>ttl.receipt <b id="chosen">${duration(seconds)}</b>${seconds === current ? ' (in force)' : ''}</span>
          <input id="slider" type="range" min="0" max=${stops.length - 1} step="1" value=${at} aria-valuetext=${duration(seconds) + '. ' + words}
            onInput=${(e) => setChosen(stops[+e.target.value])} />
        </label>
        <div class="row">
          <label>Target <select id="target" value=${target} onChange=${(e) => setTarget(+e.target.value)}>
            ${targets.map((t) => html`<option key=${t} value=${t}>${percent(t)}</option>`)}</select></label>
          <span id="knee">${knee(lab)}</span>
          ${lab.knee && html`<button type="button" onClick=${() => setChosen(stops.find((s) => s >= lab.knee.ttl_seconds) ?? stops.at(-1))}>Choose it</button>`}
        </div>
      </div>
      <div>
        <${Prediction} lab=${lab} forecast=${forecast} />
        <div class="row">
          <button type="button" id="apply" class="main" disabled=${!mayChange.yes || seconds === current}
            aria-describedby=${mayChange.yes ? undefined : 'read-only'}
            onClick=${() => setOpen({value: goDuration(seconds), forecast, reason: ''})}>Apply ${duration(seconds)} …</button>
          ${done && html`<button type="button" id="revert" disabled=${!mayChange.yes} aria-describedby=${mayChange.yes ? undefined : 'read-only'}
            onClick=${() => setOpen({value: done.undo, forecast: null, reason: `revert of version ${done.version}`})}>Revert to ${done.before} …</button>`}
          ${seconds !== current && html`<button type="button" onClick=${() => setChosen(null)}>Back to what is in force</button>`}
        </div>
        ${!mayChange.yes && html`<p class="dim" id="read-only">${mayChange.why}</p>`}
        <div role="status">${done && html`<p class="good" id="applied">ttl.receipt is ${done.after} since version ${done.version}; it was ${done.before}.</p>`}</div>
        ${fault && html`<p class="bad">${fault}</p>`}
        <p class="dim">${basis(lab)}</p>
      </div>
    </div>
    ${open && html`<${Apply} name="ttl.receipt" change=${open} lab=${lab}
      close=${() => setOpen(null)} applied=${(answer) => { setOpen(null); setDone(answer); setChosen(null); }} />`}
  <//>`;
}

// knee says where the target is reached, and whether it could be sooner.
function knee(lab) {
  if (!lab.knee) return 'not reached by any TTL that is known';
  const from = html`<b>${duration(lab.knee.ttl_seconds)}</b>`;
  return lab.knee_raised
    ? html`reached by any TTL that is accepted: from ${from} on, for it must be longer than ttl.in_progress, ${duration(lab.longer_than_seconds)}`
    : html`reached from ${from} on`;
}

// Prediction is the chosen TTL beside the one in force.
function Prediction({lab, forecast}) {
  const now = lab.current;
  const memory = (f) => (lab.bytes_per_key ? bytes(f.redis_bytes) : 'not measured yet');
  const share = (f) => (f.known ? html`<b>${percent(f.share)}</b> <small>${percent(f.share_low)} to ${percent(f.share_high)}</small>` : 'not known');
  const load = (f) => (f.known ? html`<b>${number(f.mysql_per_second)}</b>/s <small>${number(f.mysql_per_second_low)} to ${number(f.mysql_per_second_high)}</small>` : 'not known');
  return html`<table id="prediction">
    <thead><tr><td></td><th scope="col">in force: ${duration(now.ttl_seconds)}</th><th scope="col">chosen: ${duration(forecast.ttl_seconds)}</th></tr></thead>
    <tbody>
      <tr><th scope="row">retries answered before MySQL</th><td>${share(now)}</td><td id="share">${share(forecast)}</td></tr>
      <tr><th scope="row">retries that MySQL answers</th><td>${load(now)}</td><td id="load">${load(forecast)}</td></tr>
      <tr><th scope="row">memory in Redis</th><td>${memory(now)}</td><td id="memory"><b>${memory(forecast)}</b></td></tr>
      <tr><th scope="row">counted from</th><td>${count(now.sample)} retries</td><td>${count(forecast.sample)} retries</td></tr>
    </tbody>
  </table>`;
}

function say(f, lab) {
  const memory = lab.bytes_per_key ? `, ${bytes(f.redis_bytes)} in Redis` : '';
  if (!f.known) return 'Nothing is known of this TTL yet' + memory;
  return `${percent(f.share)} of retries answered before MySQL, ${number(f.mysql_per_second)} per second left for MySQL` + memory;
}

function basis(lab) {
  const r = lab.retries;
  const size = lab.bytes_per_key
    ? `${bytes(lab.bytes_per_key.bytes)} per key, measured on ${lab.bytes_per_key.entries === 1 ? 'one entry' : count(lab.bytes_per_key.entries) + ' entries'}${lab.bytes_per_key.overhead ? '' : ' without the tables of the server'}`
    : 'the size of a key is not measured yet';
  const ages = r.count ? `half of them within ${duration(r.p50_seconds)}, 99 % within ${duration(r.p99_seconds)}, the oldest after ${duration(r.oldest_seconds)}` : 'none was seen';
  return `Seen by this gateway in ${duration(Math.max(1, lab.observed_seconds))}: ${count(r.count)} retries (${ages}), `
    + `${number(lab.keys_per_second)} new keys per second; ${size}. With several gateways, rates and memory add up. `
    + `Late retries that MySQL answered are in it, so it holds for longer TTLs as well as for shorter ones, up to ${duration(lab.known_until_seconds)}: `
    + 'nothing is known beyond.';
}

// Curve is the share over the TTL, with what is not known shaded.
function Curve({lab, seconds}) {
  const data = useMemo(() => {
    const all = lab.forecasts;
    const known = (f, v) => (f.known ? v * 100 : null);
    return [all.map((f) => f.ttl_seconds), all.map((f) => known(f, f.share_high)), all.map((f) => known(f, f.share_low)), all.map((f) => known(f, f.share))];
  }, [lab]);
  const marks = useMemo(() => ({
    now: lab.current_ttl_seconds, chosen: seconds, knee: lab.knee?.ttl_seconds, until: lab.known_until_seconds, any: lab.retries.count > 0,
  }), [lab, seconds]);
  const last = lab.forecasts.filter((f) => f.known).at(-1);
  const words = last
    ? `Share of retries answered before MySQL by TTL: ${percent(lab.forecasts[0].share)} at ${duration(lab.forecasts[0].ttl_seconds)}, ${percent(last.share)} at ${duration(last.ttl_seconds)}; nothing is known beyond ${duration(lab.known_until_seconds)}`
    : 'Nothing is known of any TTL yet';
  return html`<${Chart} kind=${'ttl' + lab.forecasts.length} height=${230} data=${data} options=${options} marks=${marks} label=${words} />`;
}

function options(axis, marks) {
  const ticks = [15, m, 5 * m, 15 * m, h, 6 * h, d, 7 * d];
  const few = [15, 5 * m, h, d, 7 * d];
  return {
    padding: [14, 12, 0, 0],
    scales: {
      x: {time: false, distr: 3, range: () => [15, 7 * d]},
      y: {range: (u, min) => [Math.max(0, Math.min(90, Math.floor((min ?? 0) / 10) * 10)), 100]},
    },
    axes: [
      {...axis, splits: (u) => (u.width < 500 ? few : ticks), values: (u, all) => all.map((v) => duration(v)), filter: (u, all) => all, space: 20},
      {...axis, size: 56, values: (u, all) => all.map((v) => v + ' %')},
    ],
    bands: [{series: [1, 2], fill: colour('redis') + '40'}],
    series: [{}, {stroke: 'transparent', points: {show: false}}, {stroke: 'transparent', points: {show: false}},
      {stroke: colour('redis'), width: 2, points: {show: false}}],
    hooks: {
      drawClear: [(u) => shade(u, marks())],
      draw: [(u) => draw(u, marks())],
    },
  };
}

function shade(u, {until, any}) {
  const {ctx, bbox} = u;
  const from = any ? Math.max(bbox.left, Math.min(bbox.left + bbox.width, u.valToPos(Math.max(15, until), 'x', true))) : bbox.left;
  ctx.save();
  ctx.fillStyle = colour('unknown');
  ctx.fillRect(from, bbox.top, bbox.left + bbox.width - from, bbox.height);
  ctx.restore();
}

function draw(u, {now, chosen, knee}) {
  const {ctx, bbox} = u;
  const line = (at, name, dash, width) => {
    if (!at) return;
    const x = u.valToPos(Math.min(7 * d, Math.max(15, at)), 'x', true);
    ctx.strokeStyle = colour(name);
    ctx.lineWidth = width * devicePixelRatio;
    ctx.setLineDash(dash.map((n) => n * devicePixelRatio));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  };
  ctx.save();
  line(now, 'now', [], 2);
  line(knee, 'knee', [2, 4], 2);
  line(chosen, 'chosen', [7, 4], 2);
  ctx.restore();
}
