"use strict";
(() => {
  const colours = {
    created: "#2f9e44", replayed: "#1c7ed6", in_progress: "#f2a900", reused: "#9c36b5", rejected: "#d6336c",
    limited: "#e8590c", unavailable: "#c92a2a", read: "#0c8599", accepted: "#66a80f", unexpected: "#862e9c",
    hung_up: "#868e96", timeout: "#a61e4d", transport_error: "#5c3a21", client_limit: "#495057",
  };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = (extra) => Object.assign({
    stroke: () => css("--soft"), grid: { stroke: () => css("--line"), width: 1 }, ticks: { stroke: () => css("--line"), width: 1 },
  }, extra);
  const number = (v) => v == null ? "–" : v >= 1000 ? Math.round(v).toLocaleString("en") : String(Math.round(v * 10) / 10);
  const time = (v) => v == null ? "–" : v >= 1000 ? (v / 1000).toFixed(2) + " s" : v >= 10 ? v.toFixed(0) + " ms" : v.toFixed(2) + " ms";

  // Marks are drawn over both charts, so that cause and effect stand together.
  const marks = {
    hooks: {
      draw: (u) => {
        const c = u.ctx;
        c.save();
        c.strokeStyle = c.fillStyle = css("--warn");
        c.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
        c.lineWidth = devicePixelRatio;
        c.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
        data.marks.forEach((m, i) => {
          const x = Math.round(u.valToPos(m.seconds, "x", true));
          if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) return;
          c.beginPath();
          c.moveTo(x, u.bbox.top);
          c.lineTo(x, u.bbox.top + u.bbox.height);
          c.stroke();
          const right = x > u.bbox.left + u.bbox.width * 0.8;
          c.textAlign = right ? "right" : "left";
          // On a ground of its own, or it is lost in the areas.
          const wide = c.measureText(m.text).width, y = u.bbox.top + (13 + 14 * (i % 4)) * devicePixelRatio;
          c.fillStyle = css("--bg");
          c.fillRect(right ? x - wide - 8 * devicePixelRatio : x + 2 * devicePixelRatio, y - 11 * devicePixelRatio, wide + 6 * devicePixelRatio, 14 * devicePixelRatio);
          c.fillStyle = css("--warn");
          c.fillText(m.text, x + (right ? -5 : 5) * devicePixelRatio, y);
        });
        c.restore();
      },
    },
  };

  const base = (id) => ({
    width: document.getElementById(id).clientWidth, height: 280, plugins: [marks],
    cursor: { sync: { key: "run" } }, legend: { live: true },
    scales: { x: { time: false } },
  });
  const seconds = { label: "s", value: (_, v) => v == null ? "–" : v + " s" };

  // Areas are stacked from the last outcome up, so the good ones are at the bottom.
  const sums = data.at.map(() => 0);
  const stacked = data.outcomes.map((o) => data.at.map((_, i) => (sums[i] += o.values[i] || 0)));
  const areas = data.outcomes.map((o, k) => ({
    label: o.name, stroke: colours[o.name], fill: colours[o.name], width: 1, points: { show: false },
    value: (_u, _v, _s, i) => i == null ? "–" : number(o.values[i]) + "/s", stacked: stacked[k],
  }));
  const rev = areas.slice().reverse();
  const planned = data.planned && data.planned.length ? [{
    label: "planned intents", stroke: () => css("--fg"), width: 1.5, dash: [6, 4], points: { show: false }, value: (_, v) => v == null ? "–" : number(v) + "/s",
  }] : [];
  const top = new uPlot(Object.assign(base("outcomes"), {
    series: [seconds, ...rev, ...planned],
    axes: [axis({ values: (_, v) => v.map((x) => x + " s") }), axis({ size: 70, values: (_, v) => v.map(number) })],
    scales: { x: { time: false }, y: { range: (_u, _min, max) => [0, Math.max(1, max * 1.08)] } },
  }), [data.at, ...rev.map((a) => a.stacked), ...(planned.length ? [data.planned] : [])], document.getElementById("outcomes"));

  const line = (label, stroke) => ({ label, stroke, width: 2, spanGaps: false, value: (_, v) => time(v), points: { size: 4 } });
  const bottom = new uPlot(Object.assign(base("times"), {
    series: [seconds, line("p50", "#2f9e44"), line("p99", "#e8590c"), line("max", "#c92a2a")],
    axes: [axis({ values: (_, v) => v.map((x) => x + " s") }), axis({ size: 70, values: (_, v) => v.map((x) => x == null ? "" : time(x)) })],
    scales: { x: { time: false }, y: { distr: 3 } },
  }), [data.at, data.p50, data.p99, data.max], document.getElementById("times"));

  const fit = () => {
    for (const [u, id] of [[top, "outcomes"], [bottom, "times"]]) {
      u.setSize({ width: document.getElementById(id).clientWidth, height: 280 });
    }
  };
  addEventListener("resize", fit);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", fit);
  matchMedia("print").addEventListener("change", fit);
})();
