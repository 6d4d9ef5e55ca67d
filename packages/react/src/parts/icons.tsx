const PATHS = {
  microphone: 'M9 6a3 3 0 0 1 6 0v5a3 3 0 0 1-6 0zM5 11a7 7 0 0 0 14 0M12 18v3',
  'microphone-off': 'M9 6a3 3 0 0 1 6 0v5a3 3 0 0 1-6 0zM5 11a7 7 0 0 0 14 0M12 18v3M4 3l16 18',
  camera:
    'M5.5 6h7A2.5 2.5 0 0 1 15 8.500v7a2.5 2.5 0 0 1-2.5 2.500h-7A2.5 2.5 0 0 1 3 15.500v-7A2.5 2.5 0 0 1 5.5 6zM15 11l5-3v8l-5-3',
  'camera-off':
    'M5.5 6h7A2.5 2.5 0 0 1 15 8.500v7a2.5 2.5 0 0 1-2.5 2.500h-7A2.5 2.5 0 0 1 3 15.500v-7A2.5 2.5 0 0 1 5.5 6zM15 11l5-3v8l-5-3M3 3l18 18',
  screen: 'M5 4h14a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2zM8 21h8M12 14V8m-3 3 3-3 3 3',
  chat: 'M5 5h14a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2h-8l-5 4v-4H5a2 2 0 0 1-2-2V7a2 2 0 0 1 2-2z',
  people:
    'M12.5 8a3.5 3.5 0 1 1-7 0 3.5 3.5 0 0 1 7 0zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.800a3.5 3.5 0 0 1 0 6.400M18 14.200a6.5 6.5 0 0 1 3.5 5.800',
  settings:
    'M15 12a3 3 0 1 1-6 0 3 3 0 0 1 6 0zM12 3v3m0 12v3M3 12h3m12 0h3M5.600 5.600l2.100 2.100m8.600 8.600 2.100 2.100M5.600 18.400l2.100-2.100m8.600-8.600 2.100-2.100',
  leave: 'M14 4H6a2 2 0 0 0-2 2v12a2 2 0 0 0 2 2h8M10 12h11m-4-4 4 4-4 4',
  enlarge: 'M14 4h6v6M10 20H4v-6M20 4l-7 7M4 20l7-7',
  back: 'm14 6-6 6 6 6',
  next: 'm10 6 6 6-6 6',
};

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="cp-icon" data-icon={name} viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
