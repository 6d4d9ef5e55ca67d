/** Whether a media server has a room. */
export async function hasMediaRoom(
  node: { listRooms(): Promise<readonly { roomId: string }[]> },
  roomId: string,
): Promise<boolean> {
  return (await node.listRooms()).some((room) => room.roomId === roomId);
}
