import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { repositoryRoot, temporaryDirectory } from '@callplane/testing';
import { afterEach, describe, expect, test } from '@jest/globals';

/** Runs infra/replace.sh with a `docker` that keeps each container as a file. tests/containers uses a real engine. */

/** A container is a file whose text is its state: `running healthy 0`, `running unhealthy 0` or `exited - 0`. */
const FAKE_DOCKER = `#!/bin/sh
cd "$FAKE_STATE"
echo "$*" >> ../calls
case "$*" in
  'compose --progress quiet run '*) echo 'running healthy 0' > canary; echo canary ;;
  'compose --progress quiet up '*) echo "$FAKE_NEW" > new1; echo 'running healthy 0' > new2; [ "$FAKE_NEW" = 'running healthy 0' ] ;;
  'compose ps --all --quiet api') ls ;;
  'compose ps --quiet api') grep -l '^running' * ;;
  inspect*Health*) cat "$4" ;;
  inspect*) cut -d ' ' -f 1 "$4" ;;
  'exec canary node /app/health-check.mjs /livez /readyz /.well-known/jwks.json') exit "$(echo "$FAKE_ANSWERS" | cut -d ' ' -f "$(grep -c '^exec canary' ../calls)")" ;;
  exec*) exit 9 ;;
  start*) shift; for name in "$@"; do echo 'running healthy 0' > "$name"; done ;;
  stop*) echo 'exited - 0' > "$2"; echo "$2"; [ "$2" != old1 ] || echo "$FAKE_AFTER" > new1 ;;
  rm*) shift; rm "$@" ;;
esac
`;
const HEALTHY = 'running healthy 0';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function replace(fake: Record<string, string> = {}, ...services: string[]) {
  const root = temporaryDirectory('replace');
  folders.push(root);
  const state = join(root, 'containers');
  mkdirSync(state);
  for (const name of ['old1', 'old2']) writeFileSync(join(state, name), `${HEALTHY}\n`);
  writeFileSync(join(root, 'docker'), FAKE_DOCKER, { mode: 0o755 });
  const { status, stderr } = spawnSync('sh', [join(repositoryRoot, 'infra', 'replace.sh'), ...services], {
    encoding: 'utf8',
    env: {
      PATH: [root, process.env['PATH']].join(delimiter),
      FAKE_STATE: state,
      FAKE_NEW: HEALTHY,
      FAKE_AFTER: HEALTHY,
      FAKE_ANSWERS: '0',
      REPLACE_KNOWN_SECONDS: '0',
      REPLACE_HEALTHY_SECONDS: '1',
      REPLACE_RETRY_SECONDS: '0',
      ...fake,
    },
  });
  const containers = Object.fromEntries(
    readdirSync(state).map((name) => [name, readFileSync(join(state, name), 'utf8').trim()]),
  );
  return { status, stderr, containers, calls: readFileSync(join(root, 'calls'), 'utf8').trim().split('\n') };
}

describe('infra/replace.sh', () => {
  test('tries one container outside of the service’s name, then replaces all', () => {
    const { status, stderr, containers, calls } = replace({}, 'api');
    expect([status, stderr]).toEqual([0, '']);
    expect(containers).toEqual({ new1: HEALTHY, new2: HEALTHY });
    const [run, up] = ['compose --progress quiet run', 'compose --progress quiet up'].map((begin) =>
      calls.findIndex((call) => call.startsWith(begin)),
    );
    expect(run).toBeGreaterThanOrEqual(0);
    expect(calls[run!]).not.toContain('--use-aliases');
    expect(calls.indexOf('rm canary')).toBeLessThan(up!);
    expect(calls[up!]).toContain('--scale api=4 ');
    expect(calls.indexOf('stop old1')).toBeGreaterThan(up!);
  });

  test('gives a container that is not ready for a moment another chance', () => {
    const { status, containers } = replace({ FAKE_ANSWERS: '1 1 1 1 0' }, 'api');
    expect(status).toBe(0);
    expect(containers).toEqual({ new1: HEALTHY, new2: HEALTHY });
  });

  test('changes nothing if the tried container answers with an error', () => {
    const { status, stderr, containers, calls } = replace({ FAKE_ANSWERS: '1 1 1 1 1' }, 'api');
    expect([status, stderr]).toEqual([1, expect.stringContaining('api: nothing was changed')]);
    expect(containers).toEqual({ old1: HEALTHY, old2: HEALTHY });
    expect(calls.filter((call) => / up |stop old/.test(call))).toEqual([]);
  });

  test('removes the new containers if they do not become healthy', () => {
    const { status, containers, calls } = replace({ FAKE_NEW: 'running unhealthy 0' }, 'api');
    expect(status).toBe(1);
    expect(containers).toEqual({ old1: HEALTHY, old2: HEALTHY });
    expect(calls.filter((call) => call.startsWith('stop old'))).toEqual([]);
  });

  test('puts the old containers back if a new one breaks while they are replaced', () => {
    const { status, stderr, containers, calls } = replace({ FAKE_AFTER: 'running unhealthy 0' }, 'api');
    expect([status, stderr]).toEqual([1, expect.stringContaining('new1 is no longer healthy')]);
    expect(containers).toEqual({ old1: HEALTHY, old2: HEALTHY });
    expect(calls).toContain('stop old1');
    expect(calls).not.toContain('stop old2');
    // The old containers serve again before the new ones go.
    expect(calls.indexOf('start old1 old2')).toBeLessThan(calls.indexOf('stop new1'));
  });
});
