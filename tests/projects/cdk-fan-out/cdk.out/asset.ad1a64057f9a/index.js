exports.handler = async (event) => ({
  album: event.album,
  images: Array.from({ length: event.count }, (_, n) => `image-${n}.png`),
});
