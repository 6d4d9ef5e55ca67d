import { Failure } from '../bootstrap.js';

/**
 * The section of a version in the changelog, without its heading.
 * @param dryRun accepts `[Unreleased]` in its place
 */
export function changelogSection(changelog: string, version: string, { dryRun }: { dryRun: boolean }): string {
  const section = sectionOf(changelog, version) ?? (dryRun ? sectionOf(changelog, 'Unreleased') : undefined);
  if (section !== undefined && section !== '') return section;
  throw new Failure(`CHANGELOG.md has no section "## [${version}] - <date>" with content. Move [Unreleased] to it`);
}

function sectionOf(changelog: string, title: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1);
  const found = sections.find((section) => section.startsWith(`[${title}]`));
  return found?.slice(found.indexOf('\n') + 1).trim();
}
