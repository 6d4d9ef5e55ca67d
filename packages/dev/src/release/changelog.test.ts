import { expect, test } from '@jest/globals';
import { changelogSection } from './changelog.js';

const CHANGELOG = `# Changelog

## [Unreleased]

### Added

- Something new.

## [1.1.0] - 2026-11-22

- The release.

## [1.0.0] - 2026-10-01

`;

test('the notes of a release are the section of its version', () => {
  expect(changelogSection(CHANGELOG, '1.1.0', { dryRun: false })).toBe('- The release.');
  expect(changelogSection(CHANGELOG, '1.1.0', { dryRun: true })).toBe('- The release.');
});

test('only a rehearsal may take the changes that are not released yet', () => {
  expect(changelogSection(CHANGELOG, '1.2.0', { dryRun: true })).toBe('### Added\n\n- Something new.');
  expect(() => changelogSection(CHANGELOG, '1.2.0', { dryRun: false })).toThrow('no section "## [1.2.0]');
});

test('an empty section is refused', () => {
  expect(() => changelogSection(CHANGELOG, '1.0.0', { dryRun: false })).toThrow('with content');
});
