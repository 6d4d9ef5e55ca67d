import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from '@jest/globals';
import { FolderStore } from './folder-store.js';

const folder = mkdtempSync(join(tmpdir(), 'callplane-store-'));
const store = new FolderStore(join(folder, 'store'));
afterAll(() => rmSync(folder, { recursive: true }));

describe('the store in a folder', () => {
  test('returns the latest object of a name', async () => {
    await store.put('a/b/1', Buffer.from('first'));
    await store.put('a/b/1', Buffer.from('second'));
    expect((await buffer(await store.read('a/b/1'))).toString()).toBe('second');
    expect(await store.size('a/b/1')).toBe(6);
    expect(readdirSync(join(folder, 'store/a/b'))).toEqual(['1']);
  });

  test('takes the name of a capture of a room that may use several media servers', async () => {
    const name = 'captures/room_1/m1/videoroom-room_1-user-sess_1-1-1@m1-1795902233244954-audio-0/0';
    await store.put(name, Buffer.from('sound'));
    expect(await store.size(name)).toBe(5);
  });

  test('takes a file, and leaves it in its place', async () => {
    const path = join(folder, 'file');
    writeFileSync(path, 'content');
    await store.put('a/file', { path });
    await store.put('a/file-again', { path });
    expect(await store.size('a/file')).toBe(7);
  });

  test('keeps nothing of an object that cannot be read', async () => {
    await expect(store.put('lost/1', { path: join(folder, 'absent') })).rejects.toThrow('ENOENT');
    expect(await store.size('lost/1')).toBeNull();
    expect(readdirSync(join(folder, 'store/lost'))).toEqual([]);
  });

  test('deletes a whole path and no other', async () => {
    await store.put('x/1/a', Buffer.from('1'));
    await store.put('x/10/a', Buffer.from('2'));
    await store.removeAll('x/1/');
    await store.removeAll('x/1/');
    expect(await store.size('x/1/a')).toBeNull();
    await expect(store.read('x/1/a')).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await store.size('x/10/a')).toBe(1);
  });

  test.each(['../a', 'a/../../b', '/etc/passwd', 'a//b', '.hidden', 'a/.part', '', 'a\0b'])(
    'refuses the name %j',
    async (name) => {
      await expect(store.put(name, Buffer.from('x'))).rejects.toThrow('no name of an object');
    },
  );
});
