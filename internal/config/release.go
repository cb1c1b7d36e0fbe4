package config

// Release is the version of the product: GET /health and the command say it. It is written here rather than stamped
// at build time so that unchanged code builds to an unchanged binary.
const Release = "0.1.0"
