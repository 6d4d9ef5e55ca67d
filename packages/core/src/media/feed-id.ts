const AT_NODE = /@([a-z0-9-]+)$/;
const FORWARDED = /\+[0-9a-f]{8}$/;

/** The id of a feed that says on which media server it is. Its session's id comes first, up to the first hyphen. */
export function feedIdAt(feedId: string, nodeId: string): string {
  return `${feedId}@${nodeId}`;
}

/** The media server of a feed; null if it is the one of its room. */
export function nodeOfFeed(feedId: string): string | null {
  return AT_NODE.exec(feedId)?.[1] ?? null;
}

/**
 * The id of a feed on a media server that receives it from another one.
 * @param suffix eight hexadecimal digits, other ones for each attempt
 */
export function forwardedFeedId(feedId: string, suffix: string): string {
  return `${feedId}+${suffix}`;
}

export function isForwarded(feedId: string): boolean {
  return FORWARDED.test(feedId);
}
