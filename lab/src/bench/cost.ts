import type { Options } from 'autocannon';
import { signalingUrlOf } from '../client.js';
import { openStage } from '../fleet/stage.js';
import { joinedClient, type Client } from './signaling-client.js';
import { openCostBench, type CostBench } from './cost-bench.js';
import { deliveriesAtARate, deliveriesAtPeak, nothingToDo, PEAK } from './cost-deliveries.js';
import { METER_SETTINGS } from './cost-meter.js';
import { each, printHead } from './figures.js';
import { measure } from './rest.js';
import { openBareLoop } from './webhooks.js';

const SECONDS = Number(process.env.BENCH_SECONDS ?? 6);
const CONNECTIONS = Number(process.env.BENCH_CONNECTIONS ?? 32);
const JOINS = 200;

/**
 * What one operation costs: statements, CPU time and commands of Redis. The rows are independent of the speed of the
 * machine as far as a slow machine does not make batches larger. `BENCH_ROWS=rooms,peak` measures some rows only.
 */
export async function run() {
  const stage = await openStage({ postgresSettings: METER_SETTINGS });
  try {
    const bench = await openCostBench(stage);
    const columns = ['PostgreSQL µs', 'Node µs', 'Redis commands', 'Redis µs', 'operations, load'];
    printHead('operation', 'statements', 'transactions', ...columns);
    const rows = process.env.BENCH_ROWS?.split(',');
    for (const [name, row] of Object.entries(ROWS)) {
      if (rows === undefined || rows.includes(name)) await row(bench);
    }
  } finally {
    await stage.close();
  }
}

/** In this order: the webhook worker starts with the first row of deliveries. */
const ROWS: Record<string, (bench: CostBench) => Promise<void>> = {
  floors,
  rooms: roomsAndReads,
  joins,
  peak: deliveriesAtPeak,
  steady: deliveriesAtARate,
  idle: nothingToDo,
};

/** What the floors of the other benchmarks cost, which compares machines and days. */
async function floors(bench: CostBench) {
  const { receiver, row } = bench;
  const express = await bench.stage.startFloor();
  const rooms = `${express.origin}/rooms`;
  const create = {
    url: rooms,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"name":"bench"}',
  } as const;
  const { id } = (await (await fetch(rooms, create)).json()) as { id: string };
  for (const [name, options] of [
    ['`POST`', create],
    ['`GET`', { url: `${rooms}/${id}` }],
  ] as const) {
    await send(options, CONNECTIONS, 2);
    await row(`floor: ${name}, Express and pg, ${CONNECTIONS} connections`, [express.pid], () =>
      send(options, CONNECTIONS, SECONDS),
    );
  }
  const loop = await openBareLoop(bench.stage);
  await loop.send(receiver, 600);
  await row('floor: delivery, BullMQ and got, at peak load', [loop.pid], async () => {
    await loop.send(receiver, PEAK);
    return PEAK;
  });
}

async function roomsAndReads(bench: CostBench) {
  const { api, client, row } = bench;
  const { headers } = client;
  const room = await client.newRoom({ maxParticipants: 1_000 });
  const rooms = { url: `${api.origin}/v1/rooms`, method: 'POST', headers, body: '{"name":"bench"}' } as const;
  const routes: [string, Options, endpoints: number][] = [
    ['`POST /v1/rooms`, no endpoint', rooms, 0],
    ['`POST …/tokens`', { ...rooms, url: `${rooms.url}/${room}/tokens`, body: '{"participantName":"bench"}' }, 0],
    ['`GET /v1/rooms/{id}`', { url: `${rooms.url}/${room}`, headers }, 0],
    ['`POST /v1/rooms`, 10 endpoints', rooms, 10],
  ];
  for (const [name, options, endpoints] of routes) {
    await bench.setEndpoints(endpoints, ['room.created']);
    for (const connections of new Set([CONNECTIONS, 2])) {
      await send(options, connections, 2);
      await row(`${name}, ${connections} connections`, [api.pid], () => send(options, connections, SECONDS));
    }
  }
}

async function send(options: Options, connections: number, seconds: number): Promise<number> {
  return (await measure(options, seconds, connections)).total;
}

/** One after another, each of a participant of its own, in rooms of ten. */
async function joins(bench: CostBench) {
  const { client, stage } = bench;
  const gateway = await stage.start('signaling');
  const url = signalingUrlOf(gateway.origin);
  await bench.setEndpoints(10, ['*']);
  const rooms = await each(Array.from({ length: JOINS / 10 }), 4, () => client.newRoom({ maxParticipants: 1_000 }));
  const ticketsOf = (count: number) =>
    each(Array.from({ length: count }), 4, (_, n) => client.newToken(String(rooms[n % rooms.length]), 'bench'));
  const open: Client[] = [];
  const join = async (token: string) => void open.push(await joinedClient(url, token));
  // The first ones compile the code and prepare the statements.
  for (const ticket of await ticketsOf(40)) await join(ticket);
  const tickets = await ticketsOf(JOINS);
  await bench.row('join, 10 endpoints, one after another', [gateway.pid], async () => {
    for (const ticket of tickets) await join(ticket);
    return JOINS;
  });
  for (const each of open) each.close();
}
