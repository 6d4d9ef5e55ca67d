import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { freePort } from '@callplane/local-servers';
import { createClient, type Callplane } from '@callplane/server';
import { eventually, listenUntilEnd, repositoryRoot, temporaryDirectory } from '@callplane/testing';
import pg from 'pg';
import { ApiConfig } from '../apps/api/src/config.js';
import { CleanupWorkerConfig } from '../apps/cleanup-worker/src/config.js';
import { CliConfig } from '../apps/cli/src/config.js';
import { SignalingConfig } from '../apps/signaling/src/config.js';
import { WebhookWorkerConfig } from '../apps/webhook-worker/src/config.js';
import { parseEnvironment } from '../packages/runtime/src/config/environment.js';
import { fences, runCommands, startModule } from './snippets.testkit.js';
import { localStarts, type Dev } from './start.testkit.js';

/**
 * Runs the commands, programs, statements and settings that the guides show against one local start, page by page, in
 * the order of the page. A block that cannot run says why in its info string: ```sh no-run needs a cluster.
 */

/** Answers, files and diagrams. */
const SHOWN = ['text', 'console', 'mermaid', 'yaml'];
/** Files of examples, which other tests run: for receivers.md and the browser SDK. */
const EXAMPLES = ['ts', 'tsx', 'python', 'php', 'go'];
const RUN = ['sh', 'js', 'sql', 'env', 'json'];
const NOT_RUN_MAX = 25;

const all = fences();
const ran = all.filter(
  ({ language, reason, page }) => RUN.includes(language) && reason === undefined && !isReceiver(page),
);
const pagesWith = (language: string) => [
  ...new Set(ran.filter((fence) => fence.language === language).map(({ page }) => page)),
];
const blocksOf = (page: string, language: string) =>
  ran.filter((fence) => fence.page === page && fence.language === language).map(({ code }) => code);

function isReceiver(page: string): boolean {
  return page === 'docs/receivers.md';
}

const local = localStarts();
let dev: Dev;
let callplane: Callplane;
let variables: Record<string, string>;
beforeAll(async () => {
  dev = await local.ready(local.start());
  callplane = createClient({ baseUrl: dev.baseUrl, apiKey: dev.secretKey });
  // The README ends the newest room, which belongs to a call in the browser.
  await callplane.createRoom({ name: 'demo' });
  variables = {
    BASE: dev.baseUrl,
    KEY: dev.secretKey,
    CALLPLANE_URL: dev.baseUrl.replace(/\/v1$/, ''),
    WHIP: dev.signalingUrl.replace(/^ws/, 'http').replace(/signaling$/, 'whip'),
  };
});

describe('the blocks of the guides', () => {
  test('have a language that this file knows, and few of them do not run', () => {
    const known = [...SHOWN, ...EXAMPLES, ...RUN];
    const wrong = all.filter(
      ({ language, reason }) => reason === '' || (reason === undefined && !known.includes(language)),
    );
    expect(wrong.map(({ page, line, language }) => `${page}:${line} ${language}`)).toEqual([]);
    expect(ran.length).toBeGreaterThan(40);
    expect(all.filter(({ reason }) => reason !== undefined).length).toBeLessThanOrEqual(NOT_RUN_MAX);
  });

  test('in JSON are JSON', () => {
    for (const page of pagesWith('json')) for (const code of blocksOf(page, 'json')) JSON.parse(code);
  });

  test('of the browser SDK and of React are files of their examples, which tests run in Chromium', () => {
    const folders = ['client-js', 'react'].map((name) => join(repositoryRoot, 'packages', name, 'examples'));
    const files = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
    const shown = all.filter(({ language }) => language === 'ts' || language === 'tsx').map(({ code }) => code);
    const examples = files.filter((file) => /\.tsx?$/.test(file));
    expect(shown.sort()).toEqual(examples.map((file) => readFileSync(file, 'utf8')).sort());
  });
});

/** As a reader who reads the answer before the next block: every delivery was tried, and no recovery is under way. */
async function settled(): Promise<void> {
  await eventually(async () => {
    for await (const { id: endpointId } of callplane.listWebhooks()) {
      for await (const { status, attempts } of callplane.listDeliveries({ endpointId })) {
        if (status === 'delivering' || (status === 'pending' && attempts === 0)) return false;
      }
      const { data } = await callplane.listRecoveries({ endpointId });
      if (data.some(({ status }) => status === 'pending')) return false;
    }
    return true;
  });
}

async function withDatabase(use: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: dev.databaseUrl });
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}

/** The fields of each answer in JSON. The answer to a DELETE ends with its status. */
function fieldsIn(text: string): string[][] {
  const answers = text.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
  return answers.map((line) => Object.keys(JSON.parse(line) as object).sort());
}

const shownIn = (page: string) =>
  all
    .filter((fence) => fence.page === page && fence.language === 'console')
    .map(({ code }) => code)
    .join('');

describe('the commands', () => {
  test.each(pagesWith('sh'))('of %s work one after the other, without an error in an answer', async (page) => {
    const port = await freePort();
    const [functions = ''] = blocksOf('docs/api.md', 'sh');
    const blocks = [functions, ...blocksOf(page, 'sh')].map((block) => block.replaceAll('9000', String(port)));
    const { code, output } = await runCommands(blocks, {
      env: variables,
      folder: temporaryDirectory('snippets'),
      between: settled,
    });
    expect([code, output]).toEqual([0, expect.not.stringContaining('"error":{')]);
    if (page === 'README.md') expect(fieldsIn(output)).toEqual(fieldsIn(shownIn(page)));
  });
});

describe('the programs', () => {
  /** Runs the blocks of a page in one file, with lines that call their functions. */
  async function run(page: string, calls: string, env: Record<string, string> = {}): Promise<string> {
    const { code, output } = await startModule([...blocksOf(page, 'js'), calls].join('\n'), { ...variables, ...env })
      .ended;
    expect([code, output]).toEqual([0, output]);
    return output;
  }

  async function newToken(): Promise<string> {
    const { id: roomId } = await callplane.createRoom({ name: 'Snippets' });
    return (await callplane.issueToken({ roomId, participantName: 'Ada', permissions: ['room:join', 'audio:publish'] }))
      .token;
  }

  /** Registers an endpoint of this test, and returns the first delivery to it. */
  async function delivery() {
    const received: { headers: IncomingHttpHeaders; body: string }[] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        received.push({ headers: request.headers, body });
        response.end();
      });
    });
    const url = `${(await listenUntilEnd(server)).origin}/hook`;
    const { id, signingSecret } = await callplane.createWebhook({
      url,
      standardWebhooks: true,
      events: ['webhook.test'],
    });
    await callplane.testWebhook({ endpointId: id });
    const { headers, body } = await eventually(() => received[0]);
    await callplane.deleteWebhook({ endpointId: id });
    return {
      DELIVERY: JSON.stringify({ headers, body, secrets: { 1: signingSecret } }),
      WEBHOOK_SECRET: signingSecret,
    };
  }

  test('every page with programs has a test here', () => {
    expect(pagesWith('js').sort()).toEqual([
      'README.md',
      'docs/breakouts.md',
      'docs/client-sdk.md',
      'docs/tokens.md',
      'docs/webhooks.md',
      'packages/client-js/README.md',
      'packages/server-js/README.md',
      'packages/webhook-verifier/README.md',
    ]);
  });

  test('of README.md make the first call', async () => {
    expect(await run('README.md', '')).toMatch(/^room_\w{26} \d{3,} \d\n(?:completed|pending)\n$/);
  });

  test('of docs/client-sdk.md issue a token to a page', async () => {
    const calls = `
      const { url, token } = await (await fetch('http://127.0.0.1:' + process.env.PORT)).json();
      console.log(url, token.split('.').length);
      process.exit();`;
    const env = { SIGNALING_URL: dev.signalingUrl, PORT: String(await freePort()) };
    expect(await run('docs/client-sdk.md', calls, env)).toBe(`${dev.signalingUrl} 3\n`);
  });

  test('of docs/breakouts.md divide ten people among two rooms, and bring them back', async () => {
    const calls = `
      import { connect } from '@callplane/client-js';
      import { WebSocket } from 'ws';
      const { id: roomId } = await callplane.createRoom({ name: 'Class' });
      const people = await Promise.all(Array.from({ length: 10 }, async (_, n) => {
        const { token } = await callplane.issueToken({ roomId, participantName: 'Person ' + n });
        return connect({ url: process.env.SIGNALING_URL, token, platform: { WebSocket } });
      }));
      const moved = () => Promise.all(people.map((call) => new Promise((resolve) => call.once('moved', resolve))));
      const show = async () => {
        const ids = [...new Set(people.map((call) => call.room.id))];
        const rooms = await Promise.all(ids.map((roomId) => callplane.readRoom({ roomId })));
        console.log(...rooms.map(({ name, participantCount }) => name + ': ' + participantCount).sort());
      };
      let following = moved();
      const breakoutIds = await breakOut(roomId, 2);
      await following;
      await show();
      following = moved();
      await bringBack(roomId, breakoutIds);
      await following;
      await show();
      process.exit();`;
    const output = await run('docs/breakouts.md', calls, { SIGNALING_URL: dev.signalingUrl });
    expect(output).toBe('Group 1: 5 Group 2: 5\nClass: 10\n');
  });

  test('of docs/tokens.md verify a token', async () => {
    const calls = 'console.log((await verifyParticipantToken(process.env.TOKEN)).name);';
    expect(await run('docs/tokens.md', calls, { TOKEN: await newToken() })).toBe('Ada\n');
  });

  test('of docs/webhooks.md accept a delivery, and not one with another body', async () => {
    const calls = `
      const { headers, body, secrets } = JSON.parse(process.env.DELIVERY);
      console.log(isGenuine(headers, body, secrets), isGenuine(headers, body + ' ', secrets));
      console.log(standardEvent(headers, body, secrets).type);`;
    expect(await run('docs/webhooks.md', calls, await delivery())).toBe('true false\nwebhook.test\n');
  });

  test('of packages/webhook-verifier/README.md accept a delivery, and process it once', async () => {
    const [table = ''] = blocksOf('packages/webhook-verifier/README.md', 'sql');
    await withDatabase((client) => client.query(`CREATE SCHEMA receiver; SET search_path = receiver; ${table}`));
    const calls = `
      import pg from 'pg';
      const { headers, body, secrets } = JSON.parse(process.env.DELIVERY);
      const { event } = verify({ headers }, body, secrets);
      const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, options: '-c search_path=receiver' });
      for (let time = 0; time < 2; time += 1) await processOnce(pool, event, () => console.log(event.type));
      console.log(verify({ headers }, body + ' ', secrets).ok);
      await pool.end();`;
    const env = { ...(await delivery()), DATABASE_URL: dev.databaseUrl };
    const output = await run('packages/webhook-verifier/README.md', calls, env);
    expect(output.split('\n').filter((line) => !line.startsWith('signature_mismatch'))).toEqual([
      'webhook.test',
      'false',
      '',
    ]);
  });

  test('of packages/client-js/README.md join a call from Node', async () => {
    const env = { SIGNALING_URL: dev.signalingUrl, TOKEN: await newToken() };
    await run('packages/client-js/README.md', 'process.exit();', env);
  });

  test('of packages/server-js/README.md call, list, consume and end with SIGTERM', async () => {
    const calls = `
      const { headers, body } = JSON.parse(process.env.DELIVERY);
      console.log('received', receive(headers, body));
      await Promise.all([consumed, shown]);`;
    const code = [...blocksOf('packages/server-js/README.md', 'js'), calls].join('\n');
    const { child, ended, output } = startModule(code, { ...variables, ...(await delivery()) });
    await eventually(() => /^event room\.ended evt_/m.test(output()) && output().includes('received true'));
    child.kill('SIGTERM');
    expect([(await ended).code, output()]).toEqual([0, expect.stringContaining('Stand-up')]);
  });
});

test.each(pagesWith('sql').filter((page) => page.startsWith('docs/')))(
  'the statements of %s are accepted by PostgreSQL',
  async (page) => {
    await withDatabase(async (client) => {
      for (const statement of blocksOf(page, 'sql')) await client.query(`BEGIN; ${statement}; ROLLBACK`);
    });
  },
);

test.each(pagesWith('env'))('the settings of %s are settings of apps, which accept their values', (page) => {
  const apps = [ApiConfig, SignalingConfig, CleanupWorkerConfig, WebhookWorkerConfig, CliConfig];
  const required = {
    DATABASE_URL: 'postgresql://callplane@127.0.0.1/callplane',
    REDIS_URL: 'redis://127.0.0.1',
    ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
  };
  for (const block of blocksOf(page, 'env')) {
    const settings = Object.fromEntries(
      [...block.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]),
    );
    const unknown = Object.keys(settings).filter((name) => !apps.some(({ properties }) => name in properties));
    expect(unknown).toEqual([]);
    for (const app of apps) parseEnvironment(app, { ...required, ...settings });
  }
});
