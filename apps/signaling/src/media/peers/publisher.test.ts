import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Cell } from '../../states/state-table.js';
import { asNode, FakeHost, FakeNode, Gate, mediaError, publishRequest, settled } from '../media.testkit.js';
import { Serial } from '../serial.js';
import {
  PUBLISHER_STATES,
  type PublisherAction,
  type PublisherEvent,
  type PublisherStateName,
} from './publisher-states.js';
import { Publisher } from './publisher.js';

const STATES = Object.keys(PUBLISHER_STATES) as PublisherStateName[];
const EVENTS = Object.keys(PUBLISHER_STATES.idle) as PublisherEvent[];

const cellOf = (state: PublisherStateName, event: PublisherEvent): Cell<PublisherStateName, PublisherAction> =>
  PUBLISHER_STATES[state][event];

describe('the table of a publisher', () => {
  test.each(STATES.flatMap((state) => EVENTS.map((event) => [state, event] as const)))(
    'in %s has an entry for %s',
    (state, event) => {
      const cell = cellOf(state, event);
      if (typeof cell === 'string') expect(['ignore', 'never']).toContain(cell);
      else expect(STATES).toContain(cell.to);
    },
  );

  test('detaches the handle whenever it gives one up, unless another gateway may have it', () => {
    const withHandle = STATES.filter((state) => !['idle', 'attaching', 'closed'].includes(state));
    for (const state of withHandle) {
      for (const event of EVENTS) {
        const cell = cellOf(state, event);
        if (typeof cell === 'string' || !['idle', 'closed'].includes(cell.to)) continue;
        expect([state, event, cell.actions.includes(event === 'notHeld' ? 'forget' : 'detach')]).toEqual([
          state,
          event,
          true,
        ]);
      }
    }
  });

  test('never leaves `closed`', () => {
    for (const event of EVENTS) expect(['ignore', 'never']).toContain(cellOf('closed', event));
  });
});

type Command =
  | 'publish over peer connection 1'
  | 'publish over peer connection 2'
  | 'attach succeeds'
  | 'attach fails'
  | 'the offer is answered'
  | 'the offer is refused'
  | 'the offer fails'
  | 'media flows'
  | 'the handle is closed'
  | 'the tracks are written'
  | 'the session is not held'
  | 'drop'
  | 'client lost'
  | 'close';
/** A publication without a fault. Random commands alone seldom get so far. */
const USUAL: Command[] = [
  'publish over peer connection 1',
  'attach succeeds',
  'the offer is answered',
  'media flows',
  'the tracks are written',
];

/** What the table says, with the facts that decide between events. */
class Model {
  state: PublisherStateName = 'idle';
  step: 'attach' | 'offer' | null = null;
  isCancelled = false;
  handle: { peerConnection: number; isUp: boolean; isAnswered: boolean } | null = null;
  /** Whether the announcement that waits in the database is the latest. */
  isWriting = false;
  lost = 0;
  #peerConnection = 0;

  on(event: PublisherEvent): void {
    const cell = cellOf(this.state, event);
    if (cell === 'never') throw new Error(`${event} in ${this.state}`);
    if (cell === 'ignore') return;
    const { actions } = cell;
    this.state = cell.to;
    if (actions.includes('cancel')) this.isCancelled = true;
    if (actions.includes('detach') || actions.includes('forget')) this.handle = null;
    if (actions.includes('lose')) this.lost += 1;
    if (actions.includes('check') && this.state !== 'closed') this.lost += 1;
    if (cell.to !== 'announcing') this.isWriting = false;
    if (actions.includes('announce')) this.isWriting = true;
  }

  publish(peerConnection: number): void {
    if (this.handle !== null && this.handle.peerConnection !== peerConnection) this.on('drop');
    this.isCancelled = false;
    this.#peerConnection = peerConnection;
    this.on('publish');
    this.step = this.handle === null ? 'attach' : 'offer';
  }

  /** @returns whether the request goes on */
  #proceed(): boolean {
    this.step = null;
    return !this.isCancelled;
  }

  attached(): void {
    if (!this.#proceed()) return;
    this.handle = { peerConnection: this.#peerConnection, isUp: false, isAnswered: false };
    this.on('attached');
    this.step = 'offer';
  }

  attachFailed(): void {
    if (this.#proceed()) this.on('failed');
  }

  answered(): void {
    if (!this.#proceed()) return;
    this.handle!.isAnswered = true;
    this.on('answered');
    this.repeatConnected();
  }

  refused(isInvalid: boolean): void {
    if (!this.#proceed()) return;
    const isKept = isInvalid && this.handle!.isAnswered;
    this.on(isKept ? 'kept' : 'failed');
    this.repeatConnected();
  }

  repeatConnected(): void {
    if (this.handle?.isUp === true) this.on('connected');
  }
}

function stage() {
  const gate = new Gate();
  gate.hold('attach', 'offer', 'publishTracks');
  const [node, host] = [new FakeNode(gate), new FakeHost(gate)];
  let lost = 0;
  const publisher = new Publisher(host.asHost, {
    place: () => ({ node: asNode(node), generation: 1, session: () => node.openSession() as never }),
    writes: new Serial(),
    stateWith: () => null,
    onAnswered: () => undefined,
    onLost: () => (lost += 1),
  });
  return { gate, node, host, publisher, lost: () => lost };
}

type Stage = ReturnType<typeof stage>;

function publish({ publisher }: Stage, model: Model, peerConnection: number): void {
  if (model.step !== null || model.state === 'closed') return;
  publisher.publish(publishRequest(peerConnection)).catch(() => undefined);
  model.publish(peerConnection);
}

function answer({ gate }: Stage, model: Model, name: 'attach' | 'offer', outcome: unknown, then: () => void): void {
  if (model.step !== name) return;
  gate.open(name, outcome);
  then();
}

function write({ gate, host }: Stage, model: Model, isWritten: boolean): void {
  if (!gate.waits('publishTracks')) return;
  host.isLive = isWritten;
  gate.open('publishTracks', isWritten);
  if (model.isWriting) model.on(isWritten ? 'announced' : 'notHeld');
}

function emit({ node }: Stage, model: Model, name: 'connected' | 'closed'): void {
  if (model.handle === null) return;
  if (name === 'connected') model.handle.isUp = true;
  node.live.at(-1)?.emit(name, 'ICE failed');
  model.on(name === 'connected' ? 'connected' : 'hungUp');
}

/** Does a command with the publisher and with the model. A command that is impossible at the moment does nothing. */
const ACTIONS: Record<Command, (all: Stage, model: Model) => void> = {
  'publish over peer connection 1': (all, model) => publish(all, model, 1),
  'publish over peer connection 2': (all, model) => publish(all, model, 2),
  'attach succeeds': (all, model) => answer(all, model, 'attach', undefined, () => model.attached()),
  'attach fails': (all, model) => answer(all, model, 'attach', mediaError('timeout'), () => model.attachFailed()),
  'the offer is answered': (all, model) => answer(all, model, 'offer', undefined, () => model.answered()),
  'the offer is refused': (all, model) =>
    answer(all, model, 'offer', mediaError('invalid_sdp'), () => model.refused(true)),
  'the offer fails': (all, model) => answer(all, model, 'offer', mediaError('closed'), () => model.refused(false)),
  'media flows': (all, model) => emit(all, model, 'connected'),
  'the handle is closed': (all, model) => emit(all, model, 'closed'),
  'the tracks are written': (all, model) => write(all, model, true),
  'the session is not held': (all, model) => write(all, model, false),
  drop: ({ publisher }, model) => {
    void publisher.drop();
    model.on('drop');
  },
  'client lost': ({ publisher }, model) => {
    publisher.clientLost();
    model.on('clientLost');
    model.repeatConnected();
  },
  close: ({ publisher }, model) => {
    void publisher.close();
    model.on('close');
  },
};
const COMMANDS = Object.keys(ACTIONS) as Command[];

describe('a publisher', () => {
  test('does what the table says, for any sequence of requests, answers and faults', async () => {
    const reached = new Set<PublisherStateName>();
    const usual = fc.nat({ max: USUAL.length }).map((count) => USUAL.slice(0, count));
    const commandsOf = fc.tuple(usual, fc.array(fc.constantFrom(...COMMANDS), { maxLength: 20 }));
    await fc.assert(
      fc.asyncProperty(commandsOf, async ([first, others]) => {
        const commands = [...first, ...others];
        const all = stage();
        const model = new Model();
        for (const command of commands) {
          ACTIONS[command](all, model);
          await settled();
          expect([command, all.publisher.state]).toEqual([command, model.state]);
          expect(all.publisher.handle !== undefined).toBe(model.handle !== null);
          expect(all.lost()).toBe(model.lost);
          reached.add(model.state);
        }
        // A handle that no state knows would stay on the media server.
        if (model.step === null && model.state !== 'closed') {
          expect(all.node.live).toHaveLength(model.handle === null ? 0 : 1);
        }
        expect(all.host.logged.filter(({ level }) => level === 'error')).toEqual([]);
      }),
      { numRuns: 150 },
    );
    expect([...reached].sort()).toEqual([...STATES].sort());
  });
});
