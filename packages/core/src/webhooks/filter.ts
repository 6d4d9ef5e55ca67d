import { ERROR_DETAILS_MAX, formatPath, type ErrorDetail } from '../errors/errors.js';
import type { FilterValue } from './filter-type.js';

export const FILTER_PATHS_MAX = 8;
export const FILTER_VALUES_MAX = 8;
export const FILTER_TEXT_CHARACTERS_MAX = 255;

/** The failures of a filter of a request. Null removes it. */
export function filterFailures(path: string, filter: unknown): ErrorDetail[] {
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter)) return [];
  const entries = Object.entries(filter);
  if (entries.length < 1 || entries.length > FILTER_PATHS_MAX) {
    return [{ path, message: `must have 1 to ${FILTER_PATHS_MAX} paths, not ${entries.length}` }];
  }
  return entries
    .flatMap(([name, values]) => {
      const message = pathFailure(name) ?? valuesFailure(values);
      return message === null ? [] : [{ path: formatPath(path, [name]), message }];
    })
    .slice(0, ERROR_DETAILS_MAX);
}

function pathFailure(path: string): string | null {
  const isPath = path.length <= FILTER_TEXT_CHARACTERS_MAX && path.split('.').every((name) => name !== '');
  return isPath ? null : `must be names with dots between them, at most ${FILTER_TEXT_CHARACTERS_MAX} characters`;
}

function valuesFailure(values: unknown): string | null {
  if (!Array.isArray(values) || values.length < 1 || values.length > FILTER_VALUES_MAX) {
    return `must be a list of 1 to ${FILTER_VALUES_MAX} values`;
  }
  return values.every(isFilterValue)
    ? null
    : `must have texts of at most ${FILTER_TEXT_CHARACTERS_MAX} characters, numbers, booleans, null or { "prefix": text }`;
}

function isFilterValue(value: unknown): value is FilterValue {
  if (typeof value === 'string') return value.length <= FILTER_TEXT_CHARACTERS_MAX;
  if (typeof value !== 'object' || value === null) return true;
  const { prefix, ...others } = value as { prefix?: unknown };
  return typeof prefix === 'string' && isFilterValue(prefix) && Object.keys(others).length === 0;
}
