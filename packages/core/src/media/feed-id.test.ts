import { expect, test } from '@jest/globals';
import { feedIdAt, forwardedFeedId, isForwarded, nodeOfFeed } from './feed-id.js';

test('a feed id names its media server, and whether the feed is forwarded', () => {
  const feedId = feedIdAt('sess_01-1-2', 'media-3');
  expect([nodeOfFeed(feedId), isForwarded(feedId)]).toEqual(['media-3', false]);
  expect(nodeOfFeed('sess_01-1-2')).toBeNull();
  const forwarded = forwardedFeedId(feedId, '0a1b2c3d');
  expect([isForwarded(forwarded), nodeOfFeed(forwarded)]).toEqual([true, null]);
});
