// The admin API: the same that scripts use. The token lives as long as the tab.
const storage = 'oncegate-token';

export const token = {
  get: () => sessionStorage.getItem(storage) || '',
  set: (value) => (value ? sessionStorage.setItem(storage, value) : sessionStorage.removeItem(storage)),
};

// Problem is an answer that is not a success.
export class Problem extends Error {
  constructor(status, document) {
    const faults = (document.errors || []).map((e) => `${e.path ? e.path + ' ' : ''}${e.reason}`).join('; ');
    super(faults || document.detail || `The gateway answered ${status}.`);
    this.status = status;
    this.code = document.code || '';
  }
}

async function call(path, options = {}) {
  const headers = {...options.headers};
  if (token.get()) headers.Authorization = 'Bearer ' + token.get();
  const answer = await fetch(path, {...options, headers, cache: 'no-store', credentials: 'omit'});
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  return answer;
}

export const get = async (path, signal) => (await call(path, {signal})).json();

// setting reads one setting and the version to change it on.
export async function setting(name) {
  const answer = await call('/admin/v1/config/' + encodeURIComponent(name));
  return {setting: await answer.json(), etag: answer.headers.get('ETag')};
}

export async function change(name, etag, body) {
  const answer = await call('/admin/v1/config/' + encodeURIComponent(name), {
    method: 'PUT',
    headers: {'Content-Type': 'application/json', 'If-Match': etag},
    body: JSON.stringify(body),
  });
  return answer.json();
}

// listen calls hear with each event until signal ends it. An EventSource cannot
// show a token, so the stream is read by hand.
export async function listen(hear, signal) {
  const answer = await call('/admin/v1/events', {signal});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    text += value;
    const frames = text.split('\n\n');
    text = frames.pop();
    for (const frame of frames) {
      const fields = Object.fromEntries(frame.split('\n').map((line) => {
        const at = line.indexOf(': ');
        return [line.slice(0, at), line.slice(at + 2)];
      }));
      if (fields.event) hear(fields.event, JSON.parse(fields.data));
    }
  }
}
