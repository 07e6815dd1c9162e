FROM golang:1.26.10 AS build
WORKDIR /src
# Modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -pgo=cmd/gateway/release.pgo -o /out/oncegate ./cmd/gateway

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/oncegate /oncegate
# Where the embedded database goes when none is configured; mount a volume here
# to keep it.
WORKDIR /home/nonroot
EXPOSE 8080 9090
# One check for a container of "serve" and for one of "consume".
HEALTHCHECK --interval=10s --timeout=6s --start-period=40s --retries=3 CMD ["/oncegate", "healthcheck", "--of", "either"]
ENTRYPOINT ["/oncegate"]
CMD ["serve"]
