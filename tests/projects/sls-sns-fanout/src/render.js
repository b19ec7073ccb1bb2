exports.text = async ({ host, load }) => ({
  severity: load > 0.9 ? "critical" : "info",
  text: `${host} is at ${Math.round(load * 100)} %`,
});
