// The console: the page and its pieces, in the order in which they are read.
import {token as kept} from './api.js';
import {Breaker} from './breaker.js';
import {Config} from './config.js';
import {Conflicts} from './conflicts.js';
import {Funnel} from './funnel.js';
import {Keys} from './keys.js';
import {Latency} from './latency.js';
import {html, render, useState} from './lib.js';
import {useLive} from './live.js';
import {Strip} from './strip.js';
import {Access, useMayChange} from './access.js';
import {TTLLab} from './ttl.js';

function App() {
  const [token, setToken] = useState(kept.get());
  const [paused, setPaused] = useState(false);
  const live = useLive(token, paused);
  const mayChange = useMayChange(token);
  const enter = (value) => {
    kept.set(value);
    setToken(value);
  };
  const version = live.stats?.config?.version ?? 0;
  return html`
    <a class="skip" href="#main">To the content</a>
    <header>
      <h1>oncegate</h1>
      <span class=${'link ' + live.state} role="status">${{
        connecting: 'connecting', live: paused ? 'paused' : 'live', lost: 'no connection, trying again', locked: 'locked',
      }[live.state]}</span>
      <button type="button" aria-pressed=${paused} onClick=${() => setPaused(!paused)}>${paused ? 'Go on' : 'Pause'}</button>
      <${Access} token=${token} enter=${enter} mayChange=${mayChange} locked=${live.state === 'locked'} why=${live.why} />
    </header>
    <main id="main" tabindex="-1">
      ${live.stats && html`
        <${Strip} stats=${live.stats} />
        <div class="grid">
          <${Funnel} stats=${live.stats} history=${live.history} />
          <${Latency} stats=${live.stats} history=${live.history} />
          <${TTLLab} token=${token} mayChange=${mayChange} paused=${paused} version=${version} />
          <${Keys} token=${token} />
          <${Conflicts} conflicts=${live.conflicts} />
          <${Breaker} stats=${live.stats} transitions=${live.transitions} />
          <${Config} token=${token} version=${version} />
        </div>`}
    </main>
    <footer>All of it is of this gateway, since its start. The API is in <code>/openapi.yaml</code> of the public listener.</footer>`;
}

const app = document.getElementById('app');
app.replaceChildren();
render(html`<${App} />`, app);
