export async function geo({ zip }) {
  return { city: zip.startsWith("10") ? "Berlin" : "elsewhere" };
}

export function score(event, context, callback) {
  callback(null, { score: Number(process.env.LIMIT) + event.id.length });
}
