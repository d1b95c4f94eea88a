/* SPDX-License-Identifier: MIT */
/* libvpx; init and control calls are macros over versioned or variadic functions. */
#pragma once
#include <vpx/vp8cx.h>
#include <vpx/vpx_encoder.h>

static inline vpx_codec_err_t cvpx_enc_init(vpx_codec_ctx_t *ctx, vpx_codec_iface_t *iface, const vpx_codec_enc_cfg_t *cfg) { return vpx_codec_enc_init(ctx, iface, cfg, 0); }
static inline vpx_codec_err_t cvpx_set_cpu_used(vpx_codec_ctx_t *ctx, int value) { return vpx_codec_control(ctx, VP8E_SET_CPUUSED, value); }
static inline vpx_codec_err_t cvpx_set_static_threshold(vpx_codec_ctx_t *ctx, unsigned int value) { return vpx_codec_control(ctx, VP8E_SET_STATIC_THRESHOLD, value); }
static inline vpx_codec_err_t cvpx_set_screen_content_mode(vpx_codec_ctx_t *ctx, unsigned int value) { return vpx_codec_control(ctx, VP8E_SET_SCREEN_CONTENT_MODE, value); }
static inline vpx_codec_err_t cvpx_set_active_map(vpx_codec_ctx_t *ctx, vpx_active_map_t *map) { return vpx_codec_control(ctx, VP8E_SET_ACTIVEMAP, map); }
static inline vpx_codec_err_t cvpx_get_last_quantizer(vpx_codec_ctx_t *ctx, int *quantizer) { return vpx_codec_control(ctx, VP8E_GET_LAST_QUANTIZER_64, quantizer); }
static inline vpx_codec_err_t cvpx_set_tune_content(vpx_codec_ctx_t *ctx, int value) { return vpx_codec_control(ctx, VP9E_SET_TUNE_CONTENT, value); }
static inline vpx_codec_err_t cvpx_set_aq_mode(vpx_codec_ctx_t *ctx, unsigned int value) { return vpx_codec_control(ctx, VP9E_SET_AQ_MODE, value); }
static inline vpx_codec_err_t cvpx_set_tile_columns(vpx_codec_ctx_t *ctx, int value) { return vpx_codec_control(ctx, VP9E_SET_TILE_COLUMNS, value); }
static inline vpx_codec_err_t cvpx_set_color_space(vpx_codec_ctx_t *ctx, int value) { return vpx_codec_control(ctx, VP9E_SET_COLOR_SPACE, value); }
static inline vpx_codec_err_t cvpx_set_color_range(vpx_codec_ctx_t *ctx, int value) { return vpx_codec_control(ctx, VP9E_SET_COLOR_RANGE, value); }
