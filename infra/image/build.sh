#!/bin/sh
# Builds every app from the sources in the present directory, with the pnpm that package.json pins. The Dockerfile runs
# it; so does a test, on a machine without Docker.
set -eu

pnpm install --frozen-lockfile --prefer-offline
pnpm turbo run build --filter='./apps/*'
