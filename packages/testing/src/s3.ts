import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort, startServer } from '@callplane/local-servers';
import { temporaryDirectory, testServer, type TestServer } from './test-servers.js';

type S3Program = 'versitygw' | 'moto_server';

const FOLDERS = [...(process.env['PATH'] ?? '').split(delimiter), join(homedir(), 'go/bin')];
const PATHS = (['versitygw', 'moto_server'] as const).flatMap((program) =>
  FOLDERS.map((folder): [S3Program, string] => [program, join(folder, program)]),
);
// Every test file loads this module, so it must not run a program: `moto_server --help` takes a second.
const [FOUND, PATH] = PATHS.find(([, path]) => existsSync(path)) ?? [];

/** The installed S3 server. `moto_server` checks neither signatures nor the end of links. */
export const S3_PROGRAM: S3Program | undefined = FOUND;
/** For the name of tests that nothing can run. */
export const S3_SKIPPED =
  'skipped: no S3 server is installed; go install github.com/versity/versitygw/cmd/versitygw@v1.8.0';

export type TestS3 = TestServer & { readonly env: Readonly<Record<string, string>> };

/** An S3 server with an empty bucket. `env` are the settings of an app that stores recordings there. */
export async function startTestS3(): Promise<TestS3> {
  if (PATH === undefined) throw new Error(S3_SKIPPED);
  const dir = temporaryDirectory('s3');
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const [user, secret, bucket] = ['test-user', 'test-secret', 'recordings'];
  // versitygw keeps buckets as folders.
  mkdirSync(join(dir, 'data', bucket), { recursive: true });
  const options = {
    versitygw: ['--access', user, '--secret', secret, '--port', `127.0.0.1:${port}`, '--health', '/livez'],
    moto_server: ['--host', '127.0.0.1', '--port', String(port)],
  }[FOUND ?? 'versitygw'];
  const server = await testServer(dir, () =>
    startServer({
      ...{ name: 's3', port, url, logFile: join(dir, 's3.log'), onSpawn: undefined },
      command: {
        file: PATH,
        args: FOUND === 'versitygw' ? [...options, 'posix', '--sidecar', dirOf(dir), join(dir, 'data')] : options,
        options: {},
      },
      isReady: () =>
        fetch(`${url}/${FOUND === 'versitygw' ? 'livez' : 'moto-api'}`).then(
          ({ ok }) => ok,
          () => false,
        ),
    }),
  );
  if (FOUND === 'moto_server') await fetch(`${url}/${bucket}`, { method: 'PUT' });
  return Object.assign(server, {
    env: {
      RECORDINGS_S3_BUCKET: bucket,
      RECORDINGS_S3_ENDPOINT: url,
      RECORDINGS_S3_ACCESS_KEY_ID: user,
      RECORDINGS_S3_SECRET_ACCESS_KEY: secret,
    },
  });
}

/** Attributes of objects, for file systems that have none. */
function dirOf(dir: string): string {
  const folder = join(dir, 'attributes');
  mkdirSync(folder, { recursive: true });
  return folder;
}
