import { describe, expect, test } from '@jest/globals';
import { filterOf } from './filter-of.js';

const NOW = Date.parse('2026-11-20T12:00:00.000Z');
const filter = (query: string) => filterOf(new URLSearchParams(query), NOW);

describe('the filter of deliveries in an address', () => {
  test('has the known values, and leaves out others', () => {
    expect(filter('status=failed&type=room.created&reason=rejected')).toEqual({
      status: 'failed',
      eventType: 'room.created',
      failureReason: 'rejected',
    });
    expect(filter('endpoint=whep_1&room=room_1')).toEqual({ endpointId: 'whep_1', roomId: 'room_1' });
    expect(filter('endpoint=a/b&room=')).toEqual({});
    expect(filter('status=toString&type=x&reason=__proto__&period=constructor')).toEqual({});
  });

  test('has the times of a period or of a range, and leaves out times that do not exist', () => {
    expect(filter('period=24h')).toEqual({ since: '2026-11-19T12:00:00.000Z' });
    expect(filter('period=range&from=2026-11-20T10:00&to=2026-11-20T11:30')).toEqual({
      since: new Date('2026-11-20T10:00').toISOString(),
      until: new Date('2026-11-20T11:30').toISOString(),
    });
    expect(filter('period=range&from=2026-13-99T10:00&to=yesterday')).toEqual({});
    expect(filter('from=2026-11-20T10:00')).toEqual({});
  });
});
