import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '@callplane/testing';
import { expect, test } from '@jest/globals';

const read = (path: string) => readFileSync(join(repositoryRoot, path), 'utf8');
const { customManagers, schedule } = JSON.parse(read('renovate.json')) as {
  schedule: string[];
  customManagers: { description: string; managerFilePatterns: string[]; matchStrings: string[] }[];
};

test('Renovate looks every week, and each of its patterns finds a version in each of its files', () => {
  expect(schedule).toEqual([expect.stringContaining('monday')]);
  for (const { description, managerFilePatterns, matchStrings } of customManagers) {
    for (const file of managerFilePatterns) {
      for (const pattern of matchStrings) {
        const found = existsSync(join(repositoryRoot, file)) ? new RegExp(pattern).exec(read(file)) : null;
        expect([description, file, found?.groups?.['currentValue']]).toEqual([
          description,
          file,
          expect.stringMatching(/^\d+(\.\d+)*/),
        ]);
      }
    }
  }
});

test('the stand-ins have the tags of the images that docker-compose.yml and the Dockerfile name', () => {
  const used = [
    ...[...read('docker-compose.yml').matchAll(/^ +image: (\S+)$/gm)].map(([, image]) => image!),
    /^ARG NODE_IMAGE=(\S+)$/m.exec(read('infra/Dockerfile'))![1]!,
  ];
  const standIns = [...read('tests/containers/stand-ins/make.sh').matchAll(/^[a-z]+ ([a-z/]+:\S+)$/gm)];
  expect(standIns.length).toBeGreaterThan(4);
  for (const [, image] of standIns) expect(used).toContain(image);
  expect(read('infra/helm/callplane/values.yaml')).toContain(`image: ${used.find((image) => /coturn/.test(image))}\n`);
});
