// Chart draws lines with uPlot, in the colours of the page, as wide as it may be.
import uPlot from './vendor/uplot.js';
import {hour, html, useEffect, useRef, useState} from './lib.js';

export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

// lastMinutes is the time that charts of the recent past show.
export function lastMinutes(u, min, max) {
  const end = max ?? Date.now() / 1000;
  return [end - 15 * 60, end];
}

// timeAxis says the hour, as everywhere on the page.
export const timeAxis = (axis) => ({...axis, space: 90, values: (u, all) => all.map((v) => hour(v * 1000))});

// useScheme changes when the page turns from light to dark or back.
function useScheme() {
  const query = matchMedia('(prefers-color-scheme: dark)');
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const turn = (e) => setDark(e.matches);
    query.addEventListener('change', turn);
    return () => query.removeEventListener('change', turn);
  }, []);
  return dark;
}

// Chart takes what uPlot takes: options is a function, called once per scheme
// and whenever kind changes; data may change at any time. label says in words
// what the chart shows.
export function Chart({kind, options, data, height, label, marks}) {
  const place = useRef(null);
  const plot = useRef(null);
  const latest = useRef(marks);
  const dark = useScheme();
  latest.current = marks;
  useEffect(() => {
    const axis = {stroke: colour('dim'), grid: {stroke: colour('line'), width: 1}, ticks: {stroke: colour('line'), width: 1}};
    const o = options(axis, () => latest.current);
    plot.current = new uPlot({legend: {show: false}, cursor: {show: false}, ...o, width: place.current.clientWidth, height}, data, place.current);
    const observer = new ResizeObserver(() => plot.current.setSize({width: place.current.clientWidth, height}));
    observer.observe(place.current);
    return () => {
      observer.disconnect();
      plot.current.destroy();
    };
  }, [kind, dark, height]);
  useEffect(() => plot.current.setData(data), [data]);
  useEffect(() => plot.current.redraw(false), [marks]);
  return html`<div class="chart" ref=${place} role="img" aria-label=${label}></div>`;
}

// Legend names colours; a colour alone says nothing to many.
export function Legend({of}) {
  return html`<ul class="legend">${of.map(([name, c]) => html`<li key=${name}><i class=${'key ' + c}></i>${name}</li>`)}</ul>`;
}
