import type { Session, SessionTrack } from '@callplane/server/requests';
import { Icon, type IconName } from '../../components/icons.js';

const ICONS: Record<SessionTrack['source'], IconName> = {
  microphone: 'microphone',
  camera: 'camera',
  screen: 'screen',
  screen_audio: 'screen',
};
export const SOURCES: Record<SessionTrack['source'], string> = {
  microphone: 'microphone',
  camera: 'camera',
  screen: 'screen',
  screen_audio: 'sound of the screen',
};

/** @returns the tracks that are published now */
export function publishedTracks(session: Session | undefined): SessionTrack[] {
  if (session === undefined || session.leftAt !== null) return [];
  return session.tracks.filter(({ unpublishedAt }) => unpublishedAt === null);
}

export function TrackIcons({ session }: { session: Session | undefined }) {
  if (session === undefined) return <span className="quiet">–</span>;
  const tracks = publishedTracks(session);
  if (tracks.length === 0) return <span className="quiet">none</span>;
  const names = tracks.map(({ source }) => SOURCES[source]).join(', ');
  return (
    <span className="track-icons" role="img" aria-label={names} title={names}>
      {tracks.map(({ trackId, source }) => (
        <Icon key={trackId} name={ICONS[source]} />
      ))}
    </span>
  );
}
