/**
 * Adds `nack` to the Opus sections of a description: lost packets of audio are then sent again, as those of video are.
 * Browsers can do that, but do not offer it themselves.
 */
export function withAudioNack(sdp: string): string {
  return sdp
    .split(/(?=^m=)/m)
    .map((section) => (section.startsWith('m=audio ') ? withNack(section) : section))
    .join('');
}

function withNack(section: string): string {
  return section.replace(/^a=rtpmap:(\d+) opus\/48000\/2\r?\n/im, (line, payload: string) => {
    const feedback = `a=rtcp-fb:${payload} nack`;
    return new RegExp(`^${feedback}\\r?$`, 'm').test(section) ? line : `${line}${feedback}\r\n`;
  });
}
