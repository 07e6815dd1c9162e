// live follows the gateway: one snapshot at first, then its events.
import {Problem, get, listen} from './api.js';
import {useEffect, useRef, useState} from './lib.js';

const pointsKept = 180;
const conflictsKept = 500;
const movesKept = 200;

// useLive returns what is known, and why it may be old. It starts anew when the
// token changes, and waits while paused.
export function useLive(token, paused) {
  const [live, setLive] = useState({state: 'connecting'});
  const attempt = useRef(0);
  useEffect(() => {
    if (paused) return undefined;
    const stop = new AbortController();
    follow(setLive, stop.signal, attempt);
    return () => stop.abort();
  }, [token, paused]);
  return live;
}

async function follow(setLive, signal, attempt) {
  while (!signal.aborted) {
    try {
      const [stats, {conflicts}, {transitions}] = await Promise.all([
        get('/admin/v1/stats', signal), get('/admin/v1/conflicts', signal), get('/admin/v1/breaker', signal),
      ]);
      setLive({state: 'live', stats, history: stats.history || [], conflicts, transitions});
      attempt.current = 0;
      await listen((name, value) => setLive((was) => next(was, name, value)), signal);
    } catch (e) {
      if (signal.aborted) return;
      if (e instanceof Problem && (e.status === 401 || e.status === 403)) {
        setLive((was) => ({...was, state: 'locked', why: e.message}));
        return;
      }
    }
    if (signal.aborted) return;
    setLive((was) => ({...was, state: 'lost'}));
    attempt.current += 1;
    await pause(Math.min(10000, 500 * 2 ** attempt.current) * (0.5 + Math.random() / 2), signal);
  }
}

const pause = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener('abort', () => { clearTimeout(timer); done(); }, {once: true});
});

function next(was, name, value) {
  switch (name) {
    case 'stats': {
      const last = was.history.at(-1);
      const fresh = value.point && (!last || value.point.at > last.at);
      const history = fresh ? [...was.history, value.point].slice(-pointsKept) : was.history;
      return {...was, state: 'live', stats: value, history};
    }
    case 'conflict':
      return {...was, conflicts: [value, ...was.conflicts].slice(0, conflictsKept)};
    case 'breaker':
      return {
        ...was,
        transitions: [value, ...was.transitions].slice(0, movesKept),
        stats: {...was.stats, breaker: {state: value.to, since: value.at}},
      };
    default:
      return was;
  }
}
