# One image, three processes: the command names the entry file (docker-compose.yml).
FROM node:20.20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN node --input-type=module -e "import('./tools/prepare.mjs').then(({ prepare }) => prepare())" && npm prune --omit=dev

FROM node:20.20-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY --from=build /app/prisma prisma
COPY --from=build /app/rules rules
COPY --from=build /app/package.json ./
RUN mkdir -p /var/lib/holdfast /run/holdfast && chown node:node /var/lib/holdfast /run/holdfast
USER node
EXPOSE 3000 6432 9464 10053/udp 10053 10080 10443
ENTRYPOINT ["node", "--enable-source-maps"]
CMD ["dist/src/api.js"]
