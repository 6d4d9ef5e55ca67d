import { describe, expect, test } from '@jest/globals';
import { matchPath } from './match.js';

describe('the paths of the console', () => {
  test('match a pattern part by part, and yield its named parts', () => {
    expect(matchPath('/', '/')).toEqual({});
    expect(matchPath('/rooms/:roomId', '/rooms/room_01')).toEqual({ roomId: 'room_01' });
    expect(matchPath('/rooms', '/rooms/')).toEqual({});
  });

  test.each(['/rooms', '/rooms/a/b', '/other/a', '/rooms/..', '/rooms/a%2Fb', '/rooms/', `/rooms/${'x'.repeat(129)}`])(
    'do not match /rooms/:roomId: %s',
    (path) => {
      expect(matchPath('/rooms/:roomId', path)).toBeUndefined();
    },
  );
});
