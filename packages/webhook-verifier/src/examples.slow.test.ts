import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generateSigningSecret, signDelivery } from '@callplane/core';
import { eventually, repositoryRoot, temporaryDirectory } from '@callplane/testing';

// The examples run as a customer would run them, on the build in dist.
const examples = join(import.meta.dirname, '..', 'examples');
const hasProgram = (program: string) => spawnSync(program, ['--version']).error === undefined;
const SERVERS = [
  { name: 'express.mjs', program: process.execPath },
  { name: 'fastify.mjs', program: process.execPath },
  { name: 'receiver.py', program: 'python3' },
].filter(({ program }) => hasProgram(program));

describe.each(SERVERS)('the example $name', ({ name, program }) => {
  const secret = generateSigningSecret(Buffer.alloc(32, 1));
  const lines: string[] = [];
  let child: ChildProcess;
  let url = '';

  beforeAll(async () => {
    child = spawn(program, [join(examples, name)], {
      env: { ...process.env, PORT: '0', WEBHOOK_SECRETS: JSON.stringify({ 1: secret }) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const reader = createInterface({ input: child.stdout! });
    reader.on('line', (line) => lines.push(line));
    const [first] = (await once(reader, 'line')) as [string];
    url = `http://127.0.0.1:${first.split(' ').at(-1)}/webhooks`;
  });
  afterAll(async () => {
    const exited = once(child, 'exit');
    child.kill();
    await exited;
  });

  const deliver = async (eventId: string, changes: { version?: string; body?: string; sent?: string } = {}) => {
    const { version = '1', body = `{"id":"${eventId}","type":"room.created"}`, sent = body } = changes;
    const signed = {
      secret,
      deliveryId: 'dlv_1',
      replayCount: 0,
      timestampUnixSeconds: Math.floor(Date.now() / 1000),
      body,
    };
    const answer = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-service-signature': signDelivery(signed),
        'x-service-delivery-id': signed.deliveryId,
        'x-service-replay-count': '0',
        'x-service-signing-key-version': version,
      },
      body: sent,
    });
    return answer.status;
  };

  test('accepts a delivery and processes it once, however often it comes', async () => {
    expect(await deliver('evt_1')).toBe(204);
    expect(await deliver('evt_1')).toBe(204);
    expect(await deliver('evt_2', { body: '{ "id": "evt_2", "type": "room.ended", "data": "Zoë 😀" }' })).toBe(204);
    // The lines arrive through a pipe, later than the answers.
    await eventually(() => lines.length > 2);
    expect(lines.slice(1)).toEqual(['processing room.created evt_1', 'processing room.ended evt_2']);
  });

  test('rejects an unsigned request, and asks for a retry when it lacks the secret', async () => {
    expect(await deliver('evt_3', { sent: '{"id":"evt_3","type":"room.ended"}' })).toBe(400);
    expect(await deliver('evt_3', { version: '2' })).toBe(503);
    expect((await fetch(url, { method: 'POST' })).status).toBe(400);
    expect(lines.join()).not.toContain('evt_3');
  });
});

/** Runs `verify` of an example on the vectors whose secrets are by version, which is all that the example takes. */
const LANGUAGES = [
  {
    language: 'Python',
    program: 'python3',
    file: 'receiver.py',
    install: 'python3',
    harness: 'vectors.py',
    run: ['vectors.py'],
    code: `
import base64, json
from receiver import Unverified, verify
def accepts(vector):
    def get_all(name):
        return [value for key, value in vector["headers"] if key.lower() == name]
    try:
        verify(get_all, base64.b64decode(vector["bodyBase64"]), vector["secrets"], vector["nowUnixSeconds"])
        return True
    except Unverified:
        return False
print(json.dumps([accepts(vector) for vector in json.load(open("vectors.json"))]))
`,
  },
  {
    language: 'PHP',
    program: 'php',
    file: 'receiver.php',
    install: 'php-cli',
    harness: 'vectors.php',
    run: ['vectors.php'],
    code: `<?php
require 'receiver.php';
$results = [];
foreach (json_decode(file_get_contents('vectors.json'), true) as $vector) {
    $headers = [];
    foreach ($vector['headers'] as [$name, $value]) {
        $name = strtolower($name);
        $headers[$name] = isset($headers[$name]) ? "{$headers[$name]}, $value" : $value;
    }
    $secrets = array_map('strval', $vector['secrets']);
    try {
        verify($headers, base64_decode($vector['bodyBase64']), $secrets, $vector['nowUnixSeconds']);
        $results[] = true;
    } catch (Unverified) {
        $results[] = false;
    }
}
echo json_encode($results);
`,
  },
  {
    language: 'Go',
    program: 'go',
    file: 'receiver.go',
    install: 'golang-go',
    harness: 'vectors_test.go',
    // Vet would compile half of the standard library again, in 7 s of processor time; to optimise it takes 15 s.
    run: ['test', '-vet=off', '-count=1', '-gcflags=all=-N -l', '.'],
    code: `package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"
)

func TestVectors(t *testing.T) {
	text, _ := os.ReadFile("vectors.json")
	var vectors []struct {
		Headers        [][2]string
		BodyBase64     string
		Secrets        map[string]string
		NowUnixSeconds int64
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	results := []bool{}
	for _, vector := range vectors {
		headers := http.Header{}
		for _, header := range vector.Headers {
			headers.Add(header[0], header[1])
		}
		body, _ := base64.StdEncoding.DecodeString(vector.BodyBase64)
		_, err := Verify(headers, body, vector.Secrets, time.Unix(vector.NowUnixSeconds, 0))
		results = append(results, err == nil)
	}
	written, _ := json.Marshal(results)
	os.WriteFile("results.json", written, 0o600)
}
`,
  },
];

const all = (
  JSON.parse(readFileSync(join(examples, '..', 'test-vectors.json'), 'utf8')) as {
    vectors: { name: string; secrets: unknown; expected: { ok: boolean } }[];
  }
).vectors;
const vectors = all.filter(({ secrets }) => typeof secrets === 'object' && !Array.isArray(secrets));

describe.each(LANGUAGES)('the example in $language', ({ program, file, install, harness, run, code }) => {
  const isInstalled = spawnSync(program, ['-h']).error === undefined;
  const name = isInstalled ? '' : ` (skipped: ${program} is not installed; apt-get install ${install})`;

  (isInstalled ? test : test.skip)(
    `agrees with the test vectors${name}`,
    () => {
      const folder = temporaryDirectory('receiver');
      copyFileSync(join(examples, file), join(folder, file));
      writeFileSync(join(folder, harness), code);
      writeFileSync(join(folder, 'go.mod'), 'module receiver\n\ngo 1.19\n');
      writeFileSync(join(folder, 'vectors.json'), JSON.stringify(vectors));
      const env = { ...process.env, HOME: folder, GOFLAGS: '-mod=mod', GOTOOLCHAIN: 'local', CGO_ENABLED: '0' };
      const printed = execFileSync(program, run, { cwd: folder, env, encoding: 'utf8' });
      const results = program === 'go' ? readFileSync(join(folder, 'results.json'), 'utf8') : printed;
      const accepted = JSON.parse(results) as boolean[];
      expect(vectors.length).toBeGreaterThan(40);
      expect(vectors.map(({ name: vector }, index) => [vector, accepted[index]])).toEqual(
        vectors.map(({ name: vector, expected }) => [vector, expected.ok]),
      );
    },
    300_000,
  );
});

test('docs/receivers.md shows every example as it is', () => {
  const page = readFileSync(join(repositoryRoot, 'docs', 'receivers.md'), 'utf8');
  const files = ['receiver.py', 'receiver.go', 'receiver.php', 'express.mjs', 'fastify.mjs', 'nextjs/route.mjs'];
  for (const file of files) expect(page).toContain(readFileSync(join(examples, file), 'utf8'));
});
