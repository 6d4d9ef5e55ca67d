import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { isTouched, Refresher } from './refresher.js';

describe('a change', () => {
  test('of a room makes reads of this room outdated, and no read of another one', () => {
    const change = { kind: 'rooms', roomId: 'room_1' } as const;
    expect(isTouched('readRoom', { roomId: 'room_1' }, change)).toBe(true);
    expect(isTouched('readRoom', { roomId: 'room_2' }, change)).toBe(false);
    expect(isTouched('listRooms', {}, change)).toBe(true);
    expect(isTouched('listWebhooks', {}, change)).toBe(false);
  });
});

describe('reads after changes', () => {
  const change = { kind: 'rooms', roomId: 'room_1' } as const;
  let client: QueryClient;
  let reads: number;
  let stop: () => void;
  beforeEach(() => {
    jest.useFakeTimers();
    reads = 0;
    client = new QueryClient();
    const queryFn = () => {
      reads += 1;
      return Promise.resolve(reads);
    };
    stop = new QueryObserver(client, { queryKey: ['readRoom', { roomId: 'room_1' }], queryFn }).subscribe(
      () => undefined,
    );
  });
  afterEach(() => {
    stop();
    client.clear();
    jest.useRealTimers();
  });

  test('join: a hundred changes within the pace of a read cause one more read', async () => {
    await jest.advanceTimersByTimeAsync(0);
    expect(reads).toBe(1);
    const refresher = new Refresher(client);
    for (let sent = 0; sent < 100; sent += 1) refresher.onChanges([change]);
    await jest.advanceTimersByTimeAsync(500);
    expect(reads).toBe(1);
    await jest.advanceTimersByTimeAsync(5_000);
    expect(reads).toBe(2);
    refresher.close();
  });

  test('follow a change that arrives while a read runs', async () => {
    const refresher = new Refresher(client);
    refresher.onChanges([change]);
    await jest.advanceTimersByTimeAsync(5_000);
    expect(reads).toBe(2);
    refresher.close();
  });

  test('end with the page', async () => {
    await jest.advanceTimersByTimeAsync(0);
    const refresher = new Refresher(client);
    refresher.onChanges([change]);
    refresher.close();
    await jest.advanceTimersByTimeAsync(5_000);
    expect(reads).toBe(1);
  });
});
