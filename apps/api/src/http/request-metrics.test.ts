import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

/** The values of all series, by name and labels. */
async function series(): Promise<Map<string, number>> {
  const lines = (await api.metrics()).split('\n').map((line) => line.split(/ (?=\S+$)/));
  return new Map(lines.map(([name = '', value]) => [name, Number(value)]));
}

test('counts requests by method, route pattern and status, with one label for all unmatched paths', async () => {
  const before = await series();
  const room = await api.room();
  await api.call('GET', `/v1/rooms/${room}`);
  await api.call('GET', `/v1/rooms/room_00000000000000000000000000`);
  await api.call('GET', '/v1/nothing/here');
  await api.call('GET', `/v1/rooms/${room}`, { key: null });
  const counted = {
    'callplane_http_requests_total{method="POST",route="/v1/rooms",status="201",app="api"}': 1,
    'callplane_http_requests_total{method="GET",route="/v1/rooms/{roomId}",status="200",app="api"}': 1,
    'callplane_http_requests_total{method="GET",route="/v1/rooms/{roomId}",status="404",app="api"}': 1,
    'callplane_http_requests_total{method="GET",route="other",status="404",app="api"}': 1,
    'callplane_http_requests_total{method="GET",route="other",status="401",app="api"}': 1,
    'callplane_http_request_duration_seconds_count{app="api",method="GET",route="/v1/rooms/{roomId}"}': 2,
  };
  await eventually(async () => {
    const now = await series();
    return Object.entries(counted).every(([name, count]) => now.get(name) === (before.get(name) ?? 0) + count);
  });
  expect(await api.metrics()).not.toContain(room);
});
