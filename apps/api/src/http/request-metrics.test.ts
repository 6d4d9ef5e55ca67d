import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '@callplane/testing';
import { startTestApi, type TestApi } from '../api.testkit.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

test('counts requests by method, route pattern and status, with one label for all unmatched paths', async () => {
  const room = await api.room();
  await api.call('GET', `/v1/rooms/${room}`);
  await api.call('GET', `/v1/rooms/room_00000000000000000000000000`);
  await api.call('GET', '/v1/nothing/here');
  await api.call('GET', `/v1/rooms/${room}`, { key: null });
  const series = [
    'callplane_http_requests_total{method="POST",route="/v1/rooms",status="201",app="api"} 1',
    'callplane_http_requests_total{method="GET",route="/v1/rooms/{roomId}",status="200",app="api"} 1',
    'callplane_http_requests_total{method="GET",route="/v1/rooms/{roomId}",status="404",app="api"} 1',
    'callplane_http_requests_total{method="GET",route="other",status="404",app="api"} 1',
    'callplane_http_requests_total{method="GET",route="other",status="401",app="api"} 1',
    'callplane_http_request_duration_seconds_count{app="api",method="GET",route="/v1/rooms/{roomId}"} 2',
  ];
  await eventually(async () => {
    const lines = (await api.metrics()).split('\n');
    return series.every((line) => lines.includes(line));
  });
  expect(await api.metrics()).not.toContain(room);
});
