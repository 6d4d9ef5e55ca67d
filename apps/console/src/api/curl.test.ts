import { expect, test } from '@jest/globals';
import { curlOf } from './curl.js';

const ORIGIN = 'https://calls.example.com';

test('a curl command contains path, query and body, and no key', () => {
  expect(curlOf('listRooms', { status: 'active' }, ORIGIN)).toBe(
    `curl -sS 'https://calls.example.com/v1/rooms?status=active' \\\n  -H "Authorization: Bearer $CALLPLANE_API_KEY"`,
  );
  expect(curlOf('issueToken', { roomId: 'room_1', participantName: 'Ada' }, ORIGIN)).toContain(
    `-X POST 'https://calls.example.com/v1/rooms/room_1/tokens'`,
  );
});

test('a value with quotes cannot end the quotes of a curl command', () => {
  const command = curlOf('createRoom', { name: `it's; rm -rf $HOME` }, ORIGIN);
  expect(command).toContain(`-H 'Content-Type: application/json' \\\n  -d '{"name":"it'\\''s; rm -rf $HOME"}'`);
});
