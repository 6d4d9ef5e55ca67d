"""Publishes a picture and a tone with aiortc until its input ends. Arguments: the URL and the token."""

import asyncio
import sys
from urllib.parse import urljoin

import aiohttp
from aiortc import RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import AudioStreamTrack, VideoStreamTrack


async def main(url: str, token: str) -> None:
    peer = RTCPeerConnection()
    peer.addTransceiver(VideoStreamTrack(), direction="sendonly")
    peer.addTransceiver(AudioStreamTrack(), direction="sendonly")
    await peer.setLocalDescription(await peer.createOffer())
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {token}"}) as session:
        sdp, type_ = peer.localDescription.sdp, {"content-type": "application/sdp"}
        async with session.post(url, data=sdp, headers=type_) as response:
            answer, location = await response.text(), response.headers.get("location", "")
            print("POST", response.status, flush=True)
        await peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        async with session.delete(urljoin(url, location)) as response:
            print("DELETE", response.status, flush=True)
    await peer.close()


asyncio.run(main(sys.argv[1], sys.argv[2]))
