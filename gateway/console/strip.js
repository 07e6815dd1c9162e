// Strip: how it goes, in one line.
import {ago, duration, html, rate} from './lib.js';

const tone = {ok: 'good', closed: 'good', 'half-open': 'warn', failing: 'bad', open: 'bad'};

export function Strip({stats}) {
  const r = stats.rates;
  const c = stats.config;
  const state = {ok: 'up', failing: 'away'};
  return html`<dl class="strip" aria-label="At a glance">
    <${Item} id="received" name="requests" value=${rate(r.received)} />
    <${Item} id="created" name="created" value=${rate(r.created)} />
    <${Item} id="duplicates" name="duplicates turned away" value=${rate(r.duplicates)} />
    <${Item} id="conflicting" name="conflicts" value=${rate(r.conflicts)} tone=${r.conflicts > 0 ? 'warn' : ''} />
    <${Item} id="refused" name="refused" value=${rate(r.rejected)} />
    <${Item} id="failing" name="failed" value=${rate(r.failed)} tone=${r.failed > 0 ? 'bad' : ''} />
    <div class=${'item ' + tone[stats.breaker.state]} id="breaker-state" aria-live="polite">
      <dt>breaker</dt><dd>${stats.breaker.state}</dd>
    </div>
    <${Item} id="redis" name="Redis" value=${state[stats.redis] || 'unknown'}
      more=${stats.redis === 'failing' && 'the database answers duplicates'} tone=${tone[stats.redis]} />
    <${Item} id="mysql" name="database" value=${state[stats.mysql] || 'unknown'}
      more=${stats.mysql === 'failing' && 'nothing is accepted'} tone=${tone[stats.mysql]} />
    <${Item} id="ttl" name="ttl.receipt" value=${duration(stats.receipt_ttl_seconds)} />
    ${c && html`<${Item} id="version" name="settings" value=${'version ' + c.version}
      more=${c.version > 0 ? `${c.changed_by}, ${ago(c.changed_at)}` : 'never changed'} />`}
    <${Item} id="uptime" name="up for" value=${duration(stats.uptime_seconds)} />
  </dl>`;
}

function Item({id, name, value, more, tone}) {
  return html`<div class=${'item ' + (tone || '')} id=${id}><dt>${name}</dt><dd>${value}${more && html`<small>${more}</small>`}</dd></div>`;
}
