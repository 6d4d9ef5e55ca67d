import type { Participant, Session, SessionTrack } from '@callplane/server/requests';
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

/** The tracks that a participant publishes; muted ones are quiet. */
export function TrackIcons({ participant: { tracks } }: { participant: Participant }) {
  if (tracks.length === 0) return <span className="quiet">none</span>;
  const names = tracks.map(({ source, muted }) => `${SOURCES[source]}${muted ? ' (muted)' : ''}`).join(', ');
  return (
    <span className="track-icons" role="img" aria-label={names} title={names}>
      {tracks.map(({ trackId, source, muted }) => (
        <span key={trackId} className={muted ? 'muted-track' : ''}>
          <Icon name={ICONS[source]} />
        </span>
      ))}
    </span>
  );
}
