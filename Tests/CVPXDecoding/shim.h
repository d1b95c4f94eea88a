/* SPDX-License-Identifier: MIT */
/* libvpx's decoders, for tests; the init call is a macro over a versioned function. */
#pragma once
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>

static inline vpx_codec_err_t cvpx_dec_init(vpx_codec_ctx_t *ctx, vpx_codec_iface_t *iface) { return vpx_codec_dec_init(ctx, iface, NULL, 0); }
