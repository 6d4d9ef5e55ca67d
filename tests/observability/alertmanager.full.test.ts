import { spawn } from 'node:child_process';
import { freePort } from '@callplane/local-servers';
import { eventually, stopAtEnd, temporaryDirectory } from '@callplane/testing';
import { expect, test } from '@jest/globals';
import { fileOf } from './files.testkit.js';

/** Loads infra/alertmanager into a real Alertmanager. */

interface Alert {
  labels: Record<string, string>;
  status: { state: string };
  receivers: { name: string }[];
}

async function startAlertmanager(): Promise<string> {
  const port = await freePort();
  const child = spawn('prometheus-alertmanager', [
    `--config.file=${fileOf('infra/alertmanager/alertmanager.yml')}`,
    `--storage.path=${temporaryDirectory('alertmanager')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--cluster.listen-address=',
  ]);
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  child.once('error', (error) => (log += String(error)));
  stopAtEnd(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const url = `http://127.0.0.1:${port}`;
  await eventually(async () => {
    if (child.pid === undefined || child.exitCode !== null) throw new Error(log);
    return (await fetch(`${url}/-/ready`)).ok;
  });
  return url;
}

test('Alertmanager loads the configuration, routes by severity, and hides alerts that a missing app explains', async () => {
  const url = await startAlertmanager();
  const alerts = [
    { alertname: 'CallplaneAppMissing', app: 'api', severity: 'page' },
    { alertname: 'CallplaneInstanceDown', app: 'api', severity: 'page' },
    { alertname: 'CallplaneInstanceDown', app: 'signaling', severity: 'page' },
    { alertname: 'CallplaneEndpointFailing', app: 'webhook-worker', severity: 'ticket' },
  ];
  const sent = await fetch(`${url}/api/v2/alerts`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(alerts.map((labels) => ({ labels }))),
  });
  expect(sent.status).toBe(200);
  const shown = await eventually(async () => {
    const got = (await (await fetch(`${url}/api/v2/alerts`)).json()) as Alert[];
    return got.length === alerts.length && got.every(({ status }) => status.state !== 'unprocessed') && got;
  });
  const of = ({ labels, status, receivers }: Alert) =>
    [labels['alertname'], labels['app'], status.state, ...receivers.map(({ name }) => name)].join(' ');
  expect(shown.map(of).sort()).toEqual([
    'CallplaneAppMissing api active now',
    'CallplaneEndpointFailing webhook-worker active morning',
    'CallplaneInstanceDown api suppressed now',
    'CallplaneInstanceDown signaling active now',
  ]);
});
