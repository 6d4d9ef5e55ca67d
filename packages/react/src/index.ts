'use client';
/** Hooks and components for Callplane calls in React. */
export { useCall, useCallState } from './context.js';
export {
  type Connection,
  useActiveSpeakers,
  useConnectionState,
  useWaiting,
  useEncryption,
  useMessages,
  useParticipant,
  useParticipants,
  useQuality,
  useRecording,
  useRosterPages,
} from './hooks.js';
export { type DataStream, type Transfer, useDataStream, useRpc } from './data.js';
export type { Message, RosterState } from './companion.js';
export { type Devices, useDevices } from './devices.js';
export { type Constraints, type LocalMedia, type LocalSource, useLocalMedia } from './local-media.js';
export { type Preview, type PreviewSource, usePreview } from './preview.js';
export { CallProvider, type CallProviderProps } from './provider.js';
export { readable, type Texts, TEXTS, useTexts } from './texts.js';
export { BarButton } from './parts/bar-button.js';
export { Call, CallBody, CallHeader, type CallProps } from './parts/call.js';
export { Chat } from './parts/chat.js';
export { ConnectionBanner } from './parts/connection-banner.js';
export { ControlBar, LeaveButton, PanelButton, SourceButton } from './parts/control-bar.js';
export { ConnectionTest, type ConnectionToTest } from './parts/connection-test.js';
export { DevicePicker } from './parts/device-picker.js';
export { Media } from './parts/media.js';
export { Panel } from './parts/panel.js';
export { People } from './parts/people.js';
export { PreJoin, type PreJoinProps } from './parts/pre-join.js';
export { SettingsButton } from './parts/settings.js';
export { Stage, type StageProps } from './parts/stage.js';
export { Tile, type TileProps } from './parts/tile.js';
export { useUi } from './parts/ui.js';
