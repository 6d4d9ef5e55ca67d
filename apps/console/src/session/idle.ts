import { nowMs } from '../moving-time.js';

/** How often the time since the last input is looked at. Browsers let timers of a hidden tab run once a minute. */
const CHECK_EVERY_MS = 15_000;
/** How long other tabs have to answer. */
const ANSWER_MS = 1_000;
const INPUTS = ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart'] as const;

/** `ask`: has anybody had input lately? A number answers: the time of the last input in another tab. */
type Message = 'ask' | number;

let inputAtMs = nowMs();
/** Parts of the page that count as input while they are there, such as a running call. */
let holds = 0;

export function holdActive(): () => void {
  holds += 1;
  return () => {
    holds -= 1;
    inputAtMs = nowMs();
  };
}

function lastInputMs(): number {
  return holds > 0 ? nowMs() : inputAtMs;
}

/**
 * Calls `onIdle` once no tab of the browser has had input for this long, and again with each check while that stays so.
 * The requests of an open page do not count: the stream and its reads never let the session of the API expire.
 */
export function watchIdle(idleMs: number, onIdle: () => void): () => void {
  inputAtMs = nowMs();
  const channel = new BroadcastChannel('callplane:input');
  let toldAtMs = -Infinity;
  // Not only when they ask: a browser may freeze a hidden tab, which then answers nothing.
  const tellOthers = () => {
    if (nowMs() - toldAtMs < CHECK_EVERY_MS) return;
    toldAtMs = nowMs();
    channel.postMessage(lastInputMs());
  };
  channel.addEventListener('message', ({ data }: MessageEvent<Message>) => {
    if (data === 'ask') channel.postMessage(lastInputMs());
    else inputAtMs = Math.max(inputAtMs, data);
  });
  const isIdle = () => nowMs() - lastInputMs() >= idleMs;
  let answers: ReturnType<typeof setTimeout> | undefined;
  const check = () => {
    if (holds > 0) tellOthers();
    if (!isIdle() || answers !== undefined) return;
    channel.postMessage('ask');
    answers = setTimeout(() => {
      answers = undefined;
      if (isIdle()) onIdle();
    }, ANSWER_MS);
  };
  const onInput = () => {
    // After a sleep of the computer, input may come before the next check. It must not revive the session.
    if (isIdle()) check();
    else {
      inputAtMs = nowMs();
      tellOthers();
    }
  };
  tellOthers();
  const timer = setInterval(check, CHECK_EVERY_MS);
  for (const name of INPUTS) window.addEventListener(name, onInput, { passive: true, capture: true });
  return () => {
    clearInterval(timer);
    clearTimeout(answers);
    channel.close();
    for (const name of INPUTS) window.removeEventListener(name, onInput, { capture: true });
  };
}
