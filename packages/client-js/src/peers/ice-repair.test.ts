import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { CallplaneError } from '../errors.js';
import { IceRepair } from './ice-repair.js';

/** A connection whose state the test sets, and restarts that it answers. */
class Stage {
  readonly connection = { connectionState: 'connected' as RTCPeerConnectionState };
  readonly restarts: { resolve: () => void; reject: (error: unknown) => void }[] = [];
  replaced = 0;
  readonly paths: boolean[] = [];
  isReachable = true;
  readonly repair = new IceRepair({
    connection: this.connection,
    random: () => 0.5,
    isReachable: () => this.isReachable,
    restart: () => new Promise<void>((resolve, reject) => this.restarts.push({ resolve, reject })),
    onPath: (isLost) => this.paths.push(isLost),
    replace: () => (this.replaced += 1),
  });

  become(state: RTCPeerConnectionState): void {
    this.connection.connectionState = state;
    this.repair.changed();
  }

  async answer(error?: CallplaneError): Promise<void> {
    const restart = this.restarts.at(-1)!;
    if (error === undefined) restart.resolve();
    else restart.reject(error);
    await jest.advanceTimersByTimeAsync(0);
  }
}

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

describe('the repair of a peer connection', () => {
  test('leaves a short disconnection to the browser', async () => {
    const stage = new Stage();
    stage.become('disconnected');
    await jest.advanceTimersByTimeAsync(900);
    stage.become('connected');
    await jest.advanceTimersByTimeAsync(60_000);
    expect([stage.restarts.length, stage.replaced]).toEqual([0, 0]);
    stage.become('connected');
    expect(stage.paths).toEqual([true, false]);
  });

  test('restarts a connection that does not come up, and reports its path as lost until it has one', async () => {
    const stage = new Stage();
    stage.become('new');
    await jest.advanceTimersByTimeAsync(9_900);
    stage.become('connecting');
    expect([stage.restarts.length, stage.paths]).toEqual([0, []]);
    await jest.advanceTimersByTimeAsync(100);
    expect([stage.restarts.length, stage.paths]).toEqual([1, [true]]);
    await stage.answer();
    stage.become('connected');
    expect(stage.paths).toEqual([true, false]);
  });

  test('restarts a new connection as soon as it fails', () => {
    const stage = new Stage();
    stage.become('connecting');
    stage.become('failed');
    expect([stage.restarts.length, stage.paths]).toEqual([1, [true]]);
  });

  test('restarts a disconnected connection again and again, and replaces it after six restarts', async () => {
    const stage = new Stage();
    stage.become('disconnected');
    const counts: number[] = [];
    for (const ms of [1_000, 3_000, 3_000, 3_000, 3_000, 6_000]) {
      await jest.advanceTimersByTimeAsync(ms);
      counts.push(stage.restarts.length);
      await stage.answer();
    }
    expect([counts, stage.replaced]).toEqual([[1, 2, 3, 4, 5, 6], 0]);
    await jest.advanceTimersByTimeAsync(6_000);
    expect([stage.restarts.length, stage.replaced]).toEqual([6, 1]);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('waits for the gateway, and begins once it can be reached', async () => {
    const stage = new Stage();
    stage.isReachable = false;
    stage.become('failed');
    await jest.advanceTimersByTimeAsync(60_000);
    expect(stage.restarts).toHaveLength(0);
    stage.isReachable = true;
    stage.repair.reachable();
    expect(stage.restarts).toHaveLength(1);
  });

  test('restarts after a change of the network once the gateway can be reached, although the connection seems to be up', async () => {
    const stage = new Stage();
    stage.isReachable = false;
    stage.repair.networkChanged();
    expect(stage.restarts).toHaveLength(0);
    stage.isReachable = true;
    stage.repair.reachable();
    expect(stage.restarts).toHaveLength(1);
    // The request is lost with the connection to the gateway.
    await stage.answer(new CallplaneError('connection_lost', ''));
    stage.repair.reachable();
    expect(stage.restarts).toHaveLength(2);
    await stage.answer();
    stage.repair.reachable();
    expect([stage.restarts.length, stage.replaced]).toEqual([2, 0]);
  });

  test('restarts again after a change of the network during a restart', async () => {
    const stage = new Stage();
    stage.repair.networkChanged();
    stage.repair.networkChanged();
    expect(stage.restarts).toHaveLength(1);
    await stage.answer();
    expect(stage.restarts).toHaveLength(2);
    await stage.answer();
    expect([stage.restarts.length, stage.replaced]).toEqual([2, 0]);
  });

  test.each([
    ['media_unavailable', 0],
    ['no_answer', 0],
    ['conflict', 0],
    ['unsupported', 1],
    ['invalid_sdp', 1],
  ] as const)('after the refusal %s replaces the connection %i times', async (code, times) => {
    const stage = new Stage();
    stage.become('failed');
    await stage.answer(new CallplaneError(code, ''));
    expect(stage.replaced).toBe(times);
    if (times === 1) expect(jest.getTimerCount()).toBe(0);
  });
});
